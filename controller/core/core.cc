// The loop: events in, actions through the committer, messages out. Requests are in requests.cc.
#include "controller/core/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/log.h"

namespace pipeyard::core {
namespace {

constexpr const char* kRoom = "controller";

session::RegistryOptions RegistryOptionsOf(const CoreOptions& options,
                                           const storage::StoreIdentity& identity) {
  session::RegistryOptions registry;
  registry.session = options.session;
  registry.store_id = identity.store_id;
  registry.epoch = identity.epoch;
  registry.controller_version = options.version;
  return registry;
}

}  // namespace

Core::Core(Executor& loop, const Clock& clock, storage::Store& store, ingest::Committer& committer,
           Readers& readers, IdSource& ids, CoreOptions options)
    : loop_(loop),
      clock_(clock),
      store_(store),
      committer_(committer),
      readers_(readers),
      ids_(ids),
      options_(std::move(options)),
      identity_(store.identity()),
      registry_(std::make_unique<session::SessionRegistry>(
          loop, clock, static_cast<session::HostDirectory&>(*this),
          static_cast<session::RegistryEvents&>(*this), RegistryOptionsOf(options_, identity_))),
      scheduler_(std::make_unique<scheduler::Scheduler>(
          identity_, [this] { return ids_.Next(); }, options_.scheduler)),
      watches_(std::make_unique<WatchHub>(loop_, clock_, options_.watch_interval,
                                          [this](const std::string& run_id) {
                                            loop_.role.AssertHeld();
                                            SnapshotForWatch(run_id);
                                          })) {}

Core::~Core() = default;

Status Core::Start() {
  PIPEYARD_ASSIGN_OR_RETURN(std::vector<storage::HostRecord> hosts, store_.ListHosts());
  PIPEYARD_ASSIGN_OR_RETURN(std::vector<storage::RunRecord> runs, store_.LoadActiveRuns());
  OnLoop([this, hosts = std::move(hosts), runs = std::move(runs)]() mutable {
    loop_.role.AssertHeld();
    for (storage::HostRecord& host : hosts) hosts_[host.host_id] = std::move(host);
    Commit(scheduler_->Recover(std::move(runs), now()), nullptr);
    Tick();
  });
  return Status::Ok();
}

void Core::BeginShutdown() {
  OnLoop([this] {
    loop_.role.AssertHeld();
    is_stopping_ = true;
    const Status why = Unavailable("the controller is stopping");
    registry_->Shutdown(why);
    watches_->EndAll(why);
    UpdateStats();
  });
}

void Core::OnLoop(Task task) { loop_.Post(std::move(task)); }

void Core::Decide(const scheduler::Event& event, std::function<void(const Status&)> done) {
  if (has_fault_ || is_stopping_) {
    if (done) done(Unavailable("the controller is stopping"));
    return;
  }
  Commit(scheduler_->Handle(event, now()), std::move(done));
}

void Core::Commit(scheduler::Actions actions, std::function<void(const Status&)> done) {
  for (const std::string& note : actions.notes) Log(LogLevel::kWarning, kRoom, "{}", note);
  UpdateStats();
  const std::vector<scheduler::CloseSession> closes = std::exchange(actions.closes, {});
  if (!actions.empty() || done) Enqueue(std::move(actions), std::move(done));
  // Last: closing decides something of its own (the host is away), which comes after these actions.
  for (const scheduler::CloseSession& close : closes) {
    registry_->CloseAgent(close.host_id, InvalidArgument(close.why));
  }
}

void Core::Enqueue(scheduler::Actions actions, std::function<void(const Status&)> done) {
  ingest::Batch batch = std::exchange(actions.mutations, {});
  const auto num_frames = static_cast<uint64_t>(std::ranges::count_if(
      batch, [](const auto& m) { return std::holds_alternative<storage::StoreFrame>(m); }));
  committer_.SubmitAlways(std::move(batch),
                          [this, actions = std::move(actions), done = std::move(done),
                           num_frames](const Status& status) {
                            loop_.role.AssertHeld();
                            if (status.ok() && !has_fault_) {
                              frames_committed_ += num_frames;
                              UpdateStats();
                              Release(actions);
                            } else if (!status.ok() && status.code() != StatusCode::kCancelled) {
                              StopDeciding(status);
                            }
                            if (done) done(status);
                          });
}

// What is due now that it is durable.
void Core::Release(const scheduler::Actions& actions) {
  for (const scheduler::Send& send : actions.sends) {
    switch (send.message.message_case()) {
      case v1::ControllerMessage::kAssign:
        registry_->SendAssign(send.host_id, send.message.assign());
        break;
      case v1::ControllerMessage::kAck:
        registry_->SendAck(send.host_id, send.message.ack().attempt_id(),
                           send.message.ack().through());
        break;
      case v1::ControllerMessage::kCancel:
        registry_->SendCancel(send.host_id, send.message.cancel().attempt_id(),
                              send.message.cancel().reason());
        break;
      default:
        break;
    }
  }
  for (const scheduler::LookUp& lookup : actions.lookups) LookUp(lookup);
  for (const v1::RunProgress& progress : actions.ended) {
    Log(LogLevel::kInfo, kRoom, "run {} ended: {}", progress.summary().run_id(),
        progress.summary().state());
    watches_->OnEnded(progress);
  }
  for (const std::string& run_id : actions.changed_runs) watches_->OnChanged(run_id);
}

void Core::LookUp(const scheduler::LookUp& lookup) {
  readers_.PostInOrder([this, frame = lookup.frame]() mutable {
    const Result<bool> known = store_.KnowsAttempt(frame.frame.attempt_id());
    if (!known.ok()) {
      // Nothing is acknowledged: the agent resends after its next Hello.
      Log(LogLevel::kWarning, kRoom, "look up attempt {}: {}", frame.frame.attempt_id(),
          known.status().ToString());
      OnLoop([this, host_id = frame.host_id] {
        loop_.role.AssertHeld();
        registry_->CloseAgent(host_id, Unavailable("the store cannot be read now"));
      });
      return;
    }
    frame.is_known = *known;
    OnLoop([this, frame = std::move(frame)] {
      loop_.role.AssertHeld();
      Decide(frame);
    });
  });
}

void Core::AfterCommits(std::function<void(const Status&)> then) {
  committer_.SubmitAlways({}, std::move(then));
}

void Core::StopDeciding(const Status& why) {
  if (has_fault_) return;
  has_fault_ = true;
  const Status fault = Internal(fmt::format(
      "the store refused what was decided ({}); nothing more is decided until the controller is "
      "started again",
      why.ToString()));
  Log(LogLevel::kError, kRoom, "{}", fault.message());
  {
    MutexLock lock(stats_mutex_);
    fault_ = fault;
  }
  registry_->Shutdown(Unavailable("the controller cannot store results"));
  watches_->EndAll(Unavailable(fault.message()));
}

void Core::Tick() {
  if (is_stopping_) return;
  if (scheduler_->num_active_runs() > 0) Decide(scheduler::Tick{});
  loop_.PostAfter(options_.tick_interval, [this] {
    loop_.role.AssertHeld();
    Tick();
  });
}

void Core::UpdateStats() {
  MutexLock lock(stats_mutex_);
  stats_.hosts_known = hosts_.size();
  stats_.hosts_connected = scheduler_->num_connected_hosts();
  stats_.active_runs = scheduler_->num_active_runs();
  stats_.watches = watches_->num_watches();
  stats_.frames_committed = frames_committed_;
}

CoreStats Core::stats() const {
  MutexLock lock(stats_mutex_);
  return stats_;
}

Status Core::fault() const {
  MutexLock lock(stats_mutex_);
  return fault_;
}

// --- sessions ------------------------------------------------------------------------------------

void Core::OnAgentAttached(const std::string& agent_id, const v1::Hello& hello) {
  loop_.role.AssertHeld();
  storage::HostRecord& host = hosts_[agent_id];
  host.host_id = agent_id;
  host.name = hello.name();
  host.boot_id = hello.boot_id();
  host.agent_version = hello.agent_version();
  host.capabilities.assign(hello.capabilities().begin(), hello.capabilities().end());
  host.facts = hello.facts();
  host.last_seen_utc = clock_.UtcNow().count();
  if (host.first_seen_utc == 0) host.first_seen_utc = host.last_seen_utc;
  sessions_[agent_id] = next_session_++;
  Decide(scheduler::HostAttached{agent_id, sessions_[agent_id], hello});
}

void Core::OnAgentDetached(const std::string& agent_id, const Status&) {
  loop_.role.AssertHeld();
  const auto host = hosts_.find(agent_id);
  if (host != hosts_.end()) host->second.last_seen_utc = clock_.UtcNow().count();
  Decide(scheduler::HostDetached{agent_id, sessions_[agent_id]});
}

void Core::OnAccepted(const std::string& agent_id, const v1::Accepted& accepted) {
  loop_.role.AssertHeld();
  Decide(scheduler::AcceptReceived{agent_id, accepted});
}

void Core::OnRefused(const std::string& agent_id, const v1::Refused& refused) {
  loop_.role.AssertHeld();
  Log(LogLevel::kInfo, kRoom, "agent {} refused attempt {}: {} {}", agent_id, refused.attempt_id(),
      v1::Refused::Reason_Name(refused.reason()), refused.text());
  Decide(scheduler::RefusalReceived{agent_id, refused});
}

void Core::OnFrame(const std::string& agent_id, const v1::Frame& frame) {
  loop_.role.AssertHeld();
  // The disk is behind. Agents keep their spools, and dial again with growing pauses.
  if (committer_.fullness() >= 1) {
    registry_->CloseAgent(agent_id, Unavailable("the store is behind; send again later"));
    return;
  }
  Decide(scheduler::FrameReceived{agent_id, frame});
}

void Core::OnHeartbeat(const std::string& agent_id, const v1::Heartbeat& heartbeat) {
  loop_.role.AssertHeld();
  const auto host = hosts_.find(agent_id);
  if (host != hosts_.end()) host->second.last_seen_utc = clock_.UtcNow().count();
  Decide(scheduler::HeartbeatReceived{agent_id, heartbeat});
}

std::optional<std::string> Core::HostIdOfName(const std::string& name) const {
  loop_.role.AssertHeld();
  for (const auto& [host_id, host] : hosts_) {
    if (host.name == name) return host_id;
  }
  return std::nullopt;
}

bool Core::IsRetired(const std::string&) const { return false; }

}  // namespace pipeyard::core
