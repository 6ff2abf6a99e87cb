// Controller: the daemon's parts, put together in the order in which they depend on each other, and
// stopped in the reverse.
//
// Thread safety: confined to main's thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace pipeyard::daemon {

struct ControllerConfig {
  std::string state_dir;
  std::string listen = "127.0.0.1:7420";
  std::string http = "127.0.0.1:7421";
  bool is_insecure_allowed = false;
  Nanos heartbeat_interval = Seconds(10);
};

class Controller {
 public:
  // Opens the store, resumes what was active, listens, and writes STATE/controller.addr
  // ({"grpc": "HOST:PORT", "http": "HOST:PORT"}), which stands there while it listens.
  // Errors: one line that names the folder, file or address.
  static Result<std::unique_ptr<Controller>> Start(const ControllerConfig& config);
  // Stop() where it was not called.
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  const std::string& grpc_address() const;
  const std::string& http_address() const;

  // Refuses what is new, commits what was decided, and ends everything. Errors: kDeadlineExceeded
  // where the store took too long: what was not committed was acknowledged to nobody.
  Status Stop();

 private:
  struct Parts;
  explicit Controller(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace pipeyard::daemon
