#include "proto/grpc/endpoint.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace pipeyard::grpc_edge {
namespace {

// A cut link is noticed in 10 to 15 s by either side. Measured: with keepalive on one side only,
// the other notices nothing.
constexpr int kKeepaliveTimeMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
// Must stay below kKeepaliveTimeMs, else the server kills idle clients for pinging too often.
constexpr int kMinReceivedPingIntervalMs = 5'000;
// Shorter than any wait of the session, so that a dial finds a channel that tries again.
constexpr int kReconnectBackoffMs = 80;
// gRPC's name for it is the minimal reconnect backoff.
constexpr int kConnectTimeoutMs = 10'000;
constexpr int kMaxReceivedBytes = 4 << 20;
// What a stream's receiver buffers when its owner does not read; bounds memory with 1,000 agents.
constexpr int kStreamWindowBytes = 128 << 10;

struct HostPort {
  std::string host;  // without brackets
  int port = 0;
};

Result<HostPort> ParseHostPort(const std::string& address) {
  const Status malformed =
      InvalidArgument(fmt::format("{}: not HOST:PORT, such as 127.0.0.1:7420", address));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return malformed;
  HostPort result{address.substr(0, colon), 0};
  if (result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find(':') != std::string::npos) {
    return InvalidArgument(
        fmt::format("{}: an IPv6 address stands in brackets: [::1]:7420", address));
  }
  const std::string port = address.substr(colon + 1);
  if (result.host.empty() || port.size() > 5 ||
      !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return malformed;
  }
  result.port = std::stoi(port);
  if (result.port > 65535) return malformed;
  return result;
}

std::string JoinHostPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

// gRPC tells that it could not bind, not why: asks the kernel. OK where binding works now.
Status ProbeBind(const HostPort& target, const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int lookup =
      ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (lookup != 0) {
    return InvalidArgument(fmt::format("listen on {}: {}", address, ::gai_strerror(lookup)));
  }
  Status status;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int fd = ::socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      status = ErrnoStatus(fmt::format("listen on {}", address), errno);
      continue;
    }
    const int one = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    const int bound = ::bind(fd, info->ai_addr, info->ai_addrlen);
    const int error = errno;
    ::close(fd);
    if (bound == 0) {
      status = Status::Ok();
      break;
    }
    status = ErrnoStatus(fmt::format("listen on {}", address), error);
    if (error == EADDRINUSE) {
      status = Unavailable(fmt::format("listen on {}: {}: another program has this port", address,
                                       ErrnoText(error)));
    }
  }
  ::freeaddrinfo(found);
  return status;
}

std::chrono::system_clock::time_point DeadlineIn(Nanos delay) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(delay);
}

}  // namespace

Server::Server(std::unique_ptr<grpc::Server> server, std::string address, int port)
    : server_(std::move(server)), address_(std::move(address)), port_(port) {}

Server::~Server() { Shutdown(Nanos(0)); }

void Server::Shutdown(Nanos grace) {
  if (is_shut_down_.exchange(true)) return;
  server_->Shutdown(DeadlineIn(grace));
}

Result<std::unique_ptr<Server>> BuildServer(const ListenOptions& options,
                                            std::span<grpc::Service* const> services) {
  PIPEYARD_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(options.address));
  if (!options.is_insecure_allowed && !IsLoopback(target.host)) {
    return FailedPrecondition(fmt::format(
        "binding {} needs --insecure: connections are neither encrypted nor authenticated yet, so "
        "that only loopback is safe without it",
        options.address));
  }
  if (target.port != 0) PIPEYARD_RETURN_IF_ERROR(ProbeBind(target, options.address));

  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  // Without it a second server on the same port starts silently and takes half of the agents.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinReceivedPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  builder.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  for (grpc::Service* const service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    if (target.port != 0) PIPEYARD_RETURN_IF_ERROR(ProbeBind(target, options.address));
    return Unavailable(fmt::format("listen on {}: gRPC could not bind it", options.address));
  }
  return std::make_unique<Server>(std::move(server), JoinHostPort(target.host, port), port);
}

Status CheckDialAddress(const std::string& address) {
  PIPEYARD_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(address));
  if (target.port != 0) return Status::Ok();
  return InvalidArgument(fmt::format("{}: nobody listens on port 0", address));
}

void SetKeepalive(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  SetKeepalive(arguments);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  // Proxies of the environment are for the web, not for test machines.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Result<uint64_t> RaiseFileLimit(uint64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return ErrnoStatus("getrlimit", errno);
  if (limit.rlim_cur >= wanted) return static_cast<uint64_t>(limit.rlim_cur);
  if (limit.rlim_max < wanted) {
    const rlimit raised{wanted, wanted};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  }
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return ErrnoStatus("setrlimit", errno);
  return static_cast<uint64_t>(limit.rlim_cur);
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) != 1) return false;
  return (ntohl(address.s_addr) >> 24) == 127;
}

grpc::Status ToGrpc(const Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), status.message()};
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return Status::Ok();
  return {static_cast<StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace pipeyard::grpc_edge
