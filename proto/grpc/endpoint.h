// Servers and channels with the arguments that every connection of the project has
// (docs/PROTOCOL.md, "Connection"), and the border between Status and gRPC's.
//
// Thread safety: pure functions, Server is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace grpc {
class Channel;
class ChannelArguments;
class Server;
class Service;
class Status;
}  // namespace grpc

namespace pipeyard::grpc_edge {

grpc::Status ToGrpc(const Status& status);
// gRPC's own texts are kept.
Status FromGrpc(const grpc::Status& status);

struct ListenOptions {
  // "127.0.0.1:7420", "[::1]:7420", "localhost:7420"; port 0 draws a free one.
  std::string address;
  // Must be true for an address that is not loopback: there are no certificates.
  bool is_insecure_allowed = false;
};

// A gRPC server that listens. The services are borrowed and outlive it.
class Server {
 public:
  Server(std::unique_ptr<grpc::Server> server, std::string address, int port);
  // Shutdown(0) where it was not called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // HOST:PORT with the port that was drawn.
  const std::string& address() const { return address_; }
  int port() const { return port_; }
  // Refuses new calls, gives running ones `grace` to end, cancels what is left, and waits for it.
  // Not to be called on an executor that an edge posts to.
  void Shutdown(Nanos grace);

 private:
  std::unique_ptr<grpc::Server> server_;
  const std::string address_;
  const int port_;
  std::atomic<bool> is_shut_down_{false};
};

// Errors: kInvalidArgument ("--listen 7420: not HOST:PORT"); kFailedPrecondition ("binding
// 0.0.0.0:7420 needs --insecure: ..."); kUnavailable ("listen on 127.0.0.1:7420: EADDRINUSE
// (Address already in use)").
Result<std::unique_ptr<Server>> BuildServer(const ListenOptions& options,
                                            std::span<grpc::Service* const> services);

// OK where `address` is HOST:PORT with a port that can be dialed; whether anybody listens is
// another matter.
Status CheckDialAddress(const std::string& address);

// A peer that no longer answers is noticed in 15 s.
void SetKeepalive(grpc::ChannelArguments& arguments);

// Does not connect yet. Channels share no connection with one another.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);

// Raises the limit of open files to `wanted`, or as near to it as the hard limit allows (which only
// a process with CAP_SYS_RESOURCE can raise). Never lowers it. Returns the limit that stands now.
Result<uint64_t> RaiseFileLimit(uint64_t wanted);

// True for 127.0.0.0/8, ::1 and "localhost"; `host` without port and brackets.
bool IsLoopback(const std::string& host);

}  // namespace pipeyard::grpc_edge
