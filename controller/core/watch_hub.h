// WatchHub: who watches which active run, and when each is told: at most once in `min_interval`,
// and at the end. It does not know where progress comes from.
//
// Thread safety: confined to the executor given. Ownership: everything given by reference is
// borrowed and outlives this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::core {

using WatchId = uint64_t;

class WatchHub {
 public:
  // Each is called on the executor. `on_end` is the last call, OK after a terminal progress.
  struct Watcher {
    std::function<void(const v1::RunProgress&)> on_progress;
    std::function<void(const Status&)> on_end;
  };
  // Takes a snapshot of the run and gives it to Deliver(), once everything in it is durable. Called
  // when a change is due to be told.
  using RequestSnapshot = std::function<void(const std::string& run_id)>;

  WatchHub(Executor& executor, const Clock& clock, Nanos min_interval, RequestSnapshot request);

  // Asks for a first snapshot at once.
  WatchId Add(const std::string& run_id, Watcher watcher);
  // No call comes after it. OK for a watch that has ended.
  void Remove(WatchId id);

  void OnChanged(const std::string& run_id);
  void Deliver(const v1::RunProgress& progress);
  // The run's last progress; ends its watches.
  void OnEnded(const v1::RunProgress& progress);
  // Ends every watch.
  void EndAll(const Status& why);

  size_t num_watches() const { return run_of_.size(); }

 private:
  struct WatchedRun {
    std::map<WatchId, Watcher> watchers;
    MonotonicTime last_request{0};
    bool is_due = false;  // a timer is armed
  };
  void Request(const std::string& run_id, WatchedRun& run);

  // Constant after construction.
  Executor& executor_;
  const Clock& clock_;
  const Nanos min_interval_;
  const RequestSnapshot request_;

  std::map<std::string, WatchedRun> runs_;
  std::map<WatchId, std::string> run_of_;
  WatchId next_id_ = 1;
};

}  // namespace pipeyard::core
