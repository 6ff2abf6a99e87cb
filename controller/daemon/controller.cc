#include "controller/daemon/controller.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/log.h"
#include "controller/api/control_service.h"
#include "controller/core/core.h"
#include "controller/daemon/http_server.h"
#include "controller/ingest/committer.h"
#include "proto/grpc/agent_server.h"
#include "proto/grpc/endpoint.h"
#include "proto/options/options.h"
#include "storage/store.h"

namespace pipeyard::daemon {
namespace {

constexpr const char* kRoom = "controller";
constexpr const char* kAddressFile = "controller.addr";
// As many as the store has connections for reading.
constexpr int kReaderThreads = 4;
// 1,000 agents and their CLI users, with room.
constexpr uint64_t kWantedFiles = 65'536;
// Within the 20 s that service managers and scripts usually allow.
constexpr Nanos kFlushTimeout = Seconds(10);
constexpr Nanos kCallsTimeout = Seconds(2);

}  // namespace

// In order of dependence: destroyed from the last to the first.
struct Controller::Parts {
  std::string state_dir;
  std::unique_ptr<storage::Store> store;
  IdSource ids{SystemClock()};
  SerialExecutor loop{"controller"};
  std::unique_ptr<ingest::Committer> committer;
  std::unique_ptr<core::Readers> readers;
  std::unique_ptr<core::Core> core;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<grpc_edge::AgentServer> agents;
  std::unique_ptr<grpc::Service> control;
  std::unique_ptr<grpc_edge::Server> server;
  bool is_stopped = false;

  Status Health() const;
  std::vector<Gauge> Metrics() const;
};

Status Controller::Parts::Health() const {
  PIPEYARD_RETURN_IF_ERROR(core->fault());
  const ingest::CommitterState state = committer->state();
  return state.is_healthy ? Status::Ok() : state.failure.WithContext("the store");
}

std::vector<Gauge> Controller::Parts::Metrics() const {
  const core::CoreStats stats = core->stats();
  const ingest::CommitterCounts counts = committer->counts();
  const auto value = [](auto n) { return static_cast<double>(n); };
  return {
      {"pipeyard_hosts_known", "Hosts that ever attached.", value(stats.hosts_known)},
      {"pipeyard_hosts_connected", "Hosts attached now.", value(stats.hosts_connected)},
      {"pipeyard_runs_active", "Runs that are not terminal.", value(stats.active_runs)},
      {"pipeyard_watches", "Runs being watched, once a watcher.", value(stats.watches)},
      {"pipeyard_commit_queue_fullness", "Commit queue: 0 empty, 1 full.", committer->fullness()},
      {"pipeyard_store_healthy", "1 while the last write succeeded.", Health().ok() ? 1.0 : 0.0},
      {"pipeyard_frames_committed_total", "Frames stored since the start.",
       value(stats.frames_committed), true},
      {"pipeyard_commits_total", "Transactions since the start.", value(counts.groups), true},
      {"pipeyard_mutations_committed_total", "Changes stored since the start.",
       value(counts.mutations), true},
  };
}

Controller::Controller(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Controller::~Controller() {
  if (const Status stopped = Stop(); !stopped.ok()) {
    Log(LogLevel::kError, kRoom, "stop: {}", stopped.ToString());
  }
}

const std::string& Controller::grpc_address() const { return parts_->server->address(); }
const std::string& Controller::http_address() const { return parts_->http->address(); }

Result<std::unique_ptr<Controller>> Controller::Start(const ControllerConfig& config) {
  if (const auto limit = grpc_edge::RaiseFileLimit(kWantedFiles); !limit.ok()) {
    Log(LogLevel::kWarning, kRoom, "raise the limit of open files: {}", limit.status().ToString());
  }
  PIPEYARD_ASSIGN_OR_RETURN(const auto http_target, SplitAddress(config.http));
  if (!config.is_insecure_allowed && !grpc_edge::IsLoopback(http_target.first)) {
    return FailedPrecondition(
        fmt::format("binding {} needs --insecure: there is no encryption and no access control yet",
                    config.http));
  }
  Env& env = PosixEnv();
  auto parts = std::make_unique<Parts>();
  parts->state_dir = config.state_dir;
  PIPEYARD_ASSIGN_OR_RETURN(parts->store, storage::OpenStore(config.state_dir, SystemClock()));
  // The store's lock says that no other controller stands behind the file.
  const std::string address_path = config.state_dir + "/" + kAddressFile;
  if (env.Exists(address_path)) PIPEYARD_RETURN_IF_ERROR(env.RemoveFile(address_path));

  parts->committer = std::make_unique<ingest::Committer>(*parts->store, parts->loop);
  parts->readers = core::Readers::WithThreads(kReaderThreads);
  core::CoreOptions options;
  options.session.heartbeat_interval = config.heartbeat_interval;
  options.version = options::Version();
  options.state_dir = config.state_dir;
  parts->core =
      std::make_unique<core::Core>(parts->loop, SystemClock(), *parts->store, *parts->committer,
                                   *parts->readers, parts->ids, std::move(options));
  // From here on Stop() is needed, whatever happens.
  std::unique_ptr<Controller> controller(new Controller(std::move(parts)));
  Parts& p = *controller->parts_;
  PIPEYARD_RETURN_IF_ERROR(p.core->Start().WithContext(config.state_dir));
  PIPEYARD_ASSIGN_OR_RETURN(
      p.http, HttpServer::Start(config.http, {.health = [&p] { return p.Health(); },
                                              .metrics = [&p] { return p.Metrics(); }}));
  p.agents = std::make_unique<grpc_edge::AgentServer>(p.loop, p.core->acceptor());
  p.control = api::MakeControlService(*p.core);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::Service* const services[] = {&p.agents->service(), p.control.get()};
  PIPEYARD_ASSIGN_OR_RETURN(
      p.server, grpc_edge::BuildServer({config.listen, config.is_insecure_allowed}, services));
  PIPEYARD_RETURN_IF_ERROR(
      env.WriteFileAtomic(address_path, fmt::format("{{\"grpc\": \"{}\", \"http\": \"{}\"}}\n",
                                                    p.server->address(), p.http->address())));
  return controller;
}

Status Controller::Stop() {
  Parts& p = *parts_;
  if (std::exchange(p.is_stopped, true)) return Status::Ok();
  if (p.server != nullptr) {
    const std::string address_path = p.state_dir + "/" + kAddressFile;
    if (const Status removed = PosixEnv().RemoveFile(address_path); !removed.ok()) {
      Log(LogLevel::kWarning, kRoom, "{}", removed.ToString());
    }
  }
  p.core->BeginShutdown();
  // Calls that wait for a commit get their answer from this.
  const Status flushed = p.committer->FlushAndStop(kFlushTimeout);
  if (p.server != nullptr) p.server->Shutdown(kCallsTimeout);
  p.http.reset();
  // The loop first: its tasks use the readers, and what readers post to a stopped loop is dropped.
  p.loop.Stop();
  p.readers.reset();
  return flushed;
}

}  // namespace pipeyard::daemon
