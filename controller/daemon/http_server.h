// HttpServer: /healthz and /metrics (Prometheus text) of the controller. The only file that knows
// cpp-httplib is http_server.cc.
//
// Thread safety: Thread-safe. Ownership: owns its threads; the callbacks and what they use outlive
// it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace pipeyard::daemon {

struct Gauge {
  std::string name;  // "pipeyard_hosts_connected"
  std::string help;
  double value = 0;
  bool is_counter = false;
};

struct HttpContent {
  // OK, or what is wrong: /healthz answers 200 or 503.
  std::function<Status()> health;
  std::function<std::vector<Gauge>()> metrics;
};

class HttpServer {
 public:
  // `address`: HOST:PORT; port 0 draws a free one. Listens when it returns.
  // Errors: kInvalidArgument (not HOST:PORT), kUnavailable (the port is taken, or no address of
  // this machine).
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address, HttpContent content);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT with the port that was drawn.
  const std::string& address() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// HOST and PORT of "HOST:PORT" or "[V6]:PORT", brackets removed. Errors: kInvalidArgument.
Result<std::pair<std::string, int>> SplitAddress(const std::string& address);

// Prometheus text exposition format 0.0.4.
std::string FormatMetrics(const std::vector<Gauge>& gauges);

}  // namespace pipeyard::daemon
