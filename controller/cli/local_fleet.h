// LocalFleet: a controller and agents as child processes on loopback.
//
// Not for production: it draws free ports and stops everything it started.
// Thread safety: confined to one thread. Ownership: destroying it stops the processes (SIGTERM,
// then SIGKILL) and keeps their state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/process.h"
#include "base/status.h"

namespace pipeyard::cli {

class LocalFleet {
 public:
  // Programs are looked for beside this one. Every log and state folder lies below `state_dir`.
  static Result<std::unique_ptr<LocalFleet>> Start(Env& env, const std::string& state_dir,
                                                   int num_hosts);
  ~LocalFleet();
  LocalFleet(const LocalFleet&) = delete;
  LocalFleet& operator=(const LocalFleet&) = delete;

  // HOST:PORT of the controller's gRPC and HTTP.
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }
  // OK while every process runs; else names the one that ended and the end of its log.
  Status Check();
  // Agents first, so that they can say good-bye. Idempotent.
  void Stop();

 private:
  struct Member {
    std::string name;
    std::string log_path;
    std::unique_ptr<Process> process;
  };

  explicit LocalFleet(Env& env) : env_(env) {}
  Status Spawn(const std::string& name, std::vector<std::string> argv, const std::string& log_path);
  Status WaitForController(const std::string& address_path);
  std::string EndOf(const std::string& log_path);

  Env& env_;
  std::string grpc_address_;
  std::string http_address_;
  std::vector<Member> members_;  // the controller first
};

}  // namespace pipeyard::cli
