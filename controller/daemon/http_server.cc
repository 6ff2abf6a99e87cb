#include "controller/daemon/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <cerrno>
#include <charconv>

#include "base/executor.h"
#include "base/mutex.h"

namespace pipeyard::daemon {
namespace {

// Enough for a scraper, a probe and a person; each is a thread.
constexpr size_t kThreads = 4;
// A client that sends nothing holds a thread so long.
constexpr time_t kClientTimeoutSeconds = 1;

}  // namespace

struct HttpServer::Impl {
  httplib::Server server;
  HttpContent content;
  std::string address;
  // Runs the accept loop; last, so that it ends first.
  std::unique_ptr<SerialExecutor> acceptor;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->server.stop();
  impl_->acceptor.reset();
}

const std::string& HttpServer::address() const { return impl_->address; }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                      HttpContent content) {
  PIPEYARD_ASSIGN_OR_RETURN(const auto target, SplitAddress(address));
  auto impl = std::make_unique<Impl>();
  impl->content = std::move(content);
  httplib::Server& server = impl->server;
  // The library's own options include SO_REUSEPORT, with which a second server starts silently.
  server.set_socket_options([](socket_t socket) {
    const int one = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  });
  // One request a connection: a scraper that keeps its connection would keep a thread as well.
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(kClientTimeoutSeconds);
  server.set_read_timeout(kClientTimeoutSeconds);
  server.set_write_timeout(kClientTimeoutSeconds);
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  Impl* const self = impl.get();
  server.Get("/healthz", [self](const httplib::Request&, httplib::Response& response) {
    const Status health = self->content.health();
    response.status = health.ok() ? 200 : 503;
    response.set_content(health.ok() ? "ok\n" : health.message() + "\n", "text/plain");
  });
  server.Get("/metrics", [self](const httplib::Request&, httplib::Response& response) {
    response.set_content(FormatMetrics(self->content.metrics()),
                         "text/plain; version=0.0.4; charset=utf-8");
  });

  const auto& [host, wanted_port] = target;
  int port = wanted_port;
  errno = 0;
  if (wanted_port == 0) {
    port = server.bind_to_any_port(host);
  } else if (!server.bind_to_port(host, wanted_port)) {
    port = -1;
  }
  if (port < 0) {
    const std::string why = errno == 0 ? "no address of this machine" : ErrnoText(errno);
    return Unavailable(
        fmt::format("listen on {} for HTTP: {}; choose another address with --http", address, why));
  }
  impl->address = host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                                      : fmt::format("[{}]:{}", host, port);
  impl->acceptor = std::make_unique<SerialExecutor>("http");
  impl->acceptor->Post([self] { self->server.listen_after_bind(); });
  // stop() does nothing before the accept loop runs, and the library does not tell when it does.
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (!server.is_running()) never.WaitFor(mutex, Milliseconds(1));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Result<std::pair<std::string, int>> SplitAddress(const std::string& address) {
  const Status malformed =
      InvalidArgument(fmt::format("{}: not HOST:PORT, such as 127.0.0.1:7421", address));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return malformed;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return malformed;
  }
  const std::string digits = address.substr(colon + 1);
  int port = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) {
    return malformed;
  }
  return std::pair(std::move(host), port);
}

std::string FormatMetrics(const std::vector<Gauge>& gauges) {
  std::string text;
  for (const Gauge& gauge : gauges) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n{} {}\n", gauge.name, gauge.help, gauge.name,
                        gauge.is_counter ? "counter" : "gauge", gauge.name, gauge.value);
  }
  return text;
}

}  // namespace pipeyard::daemon
