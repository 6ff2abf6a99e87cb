// Core: the controller without its edges: one loop on which sessions, scheduler and watches live, a
// committer behind it, readers beside it. Free of gRPC types; the API and the daemon are thin over
// it.
//
// Everything that leaves (messages to agents, answers to users about what was decided) leaves when
// what it speaks of is durable: actions go through the committer in the order of the events,
// barriers included. While the store fails nothing is acknowledged and submitting and canceling are
// refused as kUnavailable; reads go on. A batch that the store refuses for what it says is a bug of
// ours: the core then stops deciding (fault()), closes every session and keeps refusing until it is
// started again, when all is rebuilt from the store.
//
// Thread safety: public functions may be called from any thread unless they say otherwise; replies
// are called on the loop or on a reader's thread. Ownership: everything given by reference is
// borrowed; it outlives this, and loop and readers are stopped before this is destroyed.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/core/readers.h"
#include "controller/core/watch_hub.h"
#include "controller/ingest/committer.h"
#include "controller/scheduler/build_run.h"
#include "controller/scheduler/scheduler.h"
#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"
#include "proto/session/session_registry.h"
#include "storage/store.h"

namespace pipeyard::core {

struct CoreOptions {
  session::ControllerSessionOptions session;
  scheduler::Options scheduler;
  // Deadlines of seconds are checked this often while there are active runs.
  Nanos tick_interval = Milliseconds(250);
  // A watch is told of changes at most this often.
  Nanos watch_interval = Milliseconds(200);
  std::string version;
  std::string state_dir;
};

// For /metrics and /healthz.
struct CoreStats {
  size_t hosts_known = 0;
  size_t hosts_connected = 0;
  size_t active_runs = 0;
  size_t watches = 0;
  uint64_t frames_committed = 0;
};

template <typename T>
using Reply = std::function<void(Result<T>)>;

class Core final : private session::RegistryEvents, private session::HostDirectory {
 public:
  Core(Executor& loop, const Clock& clock, storage::Store& store, ingest::Committer& committer,
       Readers& readers, IdSource& ids, CoreOptions options);
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Loads hosts and active runs, and begins. Once, before anything else; reads the store in the
  // caller's thread. Where it fails nothing but BeginShutdown() may follow.
  Status Start();
  // Refuses agents and requests from now on; watches end as kUnavailable. Returns at once.
  void BeginShutdown();

  // Where agents' streams arrive; to be called on the loop.
  session::StreamAcceptor& acceptor() { return *registry_; }

  // The methods of ControlService. `actor`: who asks, for the audit.
  v1::Controller GetController() const;
  void SubmitSweep(v1::SubmitSweepRequest request, std::string actor,
                   Reply<v1::SubmitSweepResponse> reply);
  void PlanSweep(v1::PlanSweepRequest request, Reply<v1::Plan> reply);
  void ListRuns(v1::ListRunsRequest request, Reply<v1::ListRunsResponse> reply);
  void GetRun(v1::GetRunRequest request, Reply<v1::Run> reply);
  void GetLog(v1::GetLogRequest request, Reply<v1::AttemptLog> reply);
  void CancelRun(v1::CancelRunRequest request, std::string actor, Reply<v1::RunProgress> reply);
  void ListHosts(Reply<v1::ListHostsResponse> reply);
  void GetHost(v1::GetHostRequest request, Reply<v1::Host> reply);
  void Diff(v1::DiffRequest request, Reply<v1::DiffResponse> reply);

  // Calls the watcher on the loop until its on_end. `started` gets the id before any of these, on
  // the loop; not where the run is not active (then only one progress and the end come).
  void WatchRun(v1::GetRunRequest request, WatchHub::Watcher watcher,
                std::function<void(WatchId)> started);
  void StopWatching(WatchId id);

  CoreStats stats() const EXCLUDES(stats_mutex_);
  // OK, or why it decides nothing any more.
  Status fault() const EXCLUDES(stats_mutex_);

 private:
  // session::RegistryEvents, on the loop.
  void OnAgentAttached(const std::string& agent_id, const v1::Hello& hello) override;
  void OnAgentDetached(const std::string& agent_id, const Status& why) override;
  void OnAccepted(const std::string& agent_id, const v1::Accepted& accepted) override;
  void OnRefused(const std::string& agent_id, const v1::Refused& refused) override;
  void OnFrame(const std::string& agent_id, const v1::Frame& frame) override;
  void OnHeartbeat(const std::string& agent_id, const v1::Heartbeat& heartbeat) override;
  // session::HostDirectory, on the loop.
  std::optional<std::string> HostIdOfName(const std::string& name) const override;
  bool IsRetired(const std::string& host_id) const override;

  // Decides, commits, and lets out what is due after the commit, then `done`, with the status of
  // the commit.
  void Decide(const scheduler::Event& event, std::function<void(const Status&)> done = nullptr)
      REQUIRES(loop_.role);
  void Commit(scheduler::Actions actions, std::function<void(const Status&)> done)
      REQUIRES(loop_.role);
  void Enqueue(scheduler::Actions actions, std::function<void(const Status&)> done)
      REQUIRES(loop_.role);
  void Release(const scheduler::Actions& actions) REQUIRES(loop_.role);
  void LookUp(const scheduler::LookUp& lookup) REQUIRES(loop_.role);
  // Calls `then` on the loop once everything decided so far is durable; its status is that of the
  // committer.
  void AfterCommits(std::function<void(const Status&)> then) REQUIRES(loop_.role);
  void StopDeciding(const Status& why) REQUIRES(loop_.role);
  void Tick() REQUIRES(loop_.role);
  void UpdateStats() REQUIRES(loop_.role);

  // OK where something may be decided for a user now.
  Status CheckWritable() const REQUIRES(loop_.role);
  void StoreRun(scheduler::BuiltRun built, std::string actor, v1::SubmitSweepResponse response,
                Reply<v1::SubmitSweepResponse> reply) REQUIRES(loop_.role);
  void SnapshotForWatch(const std::string& run_id) REQUIRES(loop_.role);
  void AnswerWithEndedRun(const std::string& run_id, Reply<v1::RunProgress> reply)
      REQUIRES(loop_.role);
  std::vector<scheduler::HostView> HostViews() const REQUIRES(loop_.role);
  scheduler::Now now() const { return {clock_.Now(), clock_.UtcNow()}; }
  // Runs `task` on the loop with its role held.
  void OnLoop(Task task);

  // Constant after construction.
  Executor& loop_;
  const Clock& clock_;
  storage::Store& store_;
  ingest::Committer& committer_;
  Readers& readers_;
  IdSource& ids_;
  const CoreOptions options_;
  const storage::StoreIdentity identity_;
  std::unique_ptr<session::SessionRegistry> registry_;

  // Confined to the loop.
  std::unique_ptr<scheduler::Scheduler> scheduler_ GUARDED_BY(loop_.role);
  std::unique_ptr<WatchHub> watches_ GUARDED_BY(loop_.role);
  std::map<std::string, storage::HostRecord> hosts_ GUARDED_BY(loop_.role);
  std::map<std::string, uint64_t> sessions_ GUARDED_BY(loop_.role);
  uint64_t next_session_ GUARDED_BY(loop_.role) = 1;
  bool is_stopping_ GUARDED_BY(loop_.role) = false;
  bool has_fault_ GUARDED_BY(loop_.role) = false;
  uint64_t frames_committed_ GUARDED_BY(loop_.role) = 0;

  mutable Mutex stats_mutex_;
  // Guarded by stats_mutex_.
  CoreStats stats_ GUARDED_BY(stats_mutex_);
  Status fault_ GUARDED_BY(stats_mutex_);
};

}  // namespace pipeyard::core
