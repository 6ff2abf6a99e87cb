// A scheduler over a ModelStore with a clock that tests move: each event's mutations are applied at
// once and its sends are kept.
//
// Thread safety: confined to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/scheduler/scheduler.h"
#include "controller/scheduler/testing/builders.h"
#include "controller/scheduler/testing/model_store.h"

namespace pipeyard::scheduler {

class SchedulerFixture {
 public:
  SchedulerFixture();

  // Returns the event's actions, applied. ADD_FAILUREs when the store refuses them.
  Actions Handle(const Event& event);
  // A new scheduler from what is stored.
  Actions Restart();
  void Advance(Nanos by) { clock_.Advance(by); }

  Actions Attach(uint32_t n, const std::vector<v1::HeldAttempt>& held = {});
  Actions Detach(uint32_t n);
  // The run's id.
  std::string Submit(const spec::Sweep& sweep, const std::vector<uint32_t>& hosts, uint32_t n = 1);
  Actions Accept(uint32_t n, const std::string& attempt_id);
  Actions Refuse(uint32_t n, const std::string& attempt_id, v1::Refused::Reason reason);
  Actions Finish(uint32_t n, const std::string& attempt_id, v1::Outcome outcome,
                 const std::string& reason_code = "");
  Actions Beat(uint32_t n, const std::vector<v1::HeldAttempt>& held = {});

  v1::HeldAttempt Held(const std::string& attempt_id, v1::AttemptPhase phase,
                       Nanos running = Nanos(0)) const;

  // Of the newest Assign to the host; fails the test where there was none.
  v1::Assign LastAssign(uint32_t n) const;
  std::string LastAttempt(uint32_t n) const { return LastAssign(n).attempt_id(); }
  storage::RunRecord Run(const std::string& run_id) { return store_.LoadRun(run_id).value(); }

  Scheduler& scheduler() { return *scheduler_; }
  ModelStore& store() { return store_; }
  // Everything sent since the beginning.
  const std::vector<Send>& sent() const { return sent_; }
  static std::string HostId(uint32_t n) { return TestHost(n).record.host_id; }

 private:
  Now now() const { return {clock_.Now(), clock_.UtcNow()}; }
  void Apply(const Actions& actions);

  FakeClock clock_;
  IdSource ids_{clock_, 1};
  ModelStore store_{TestUuid(1)};
  std::unique_ptr<Scheduler> scheduler_;
  uint64_t next_session_ = 1;
  std::map<uint32_t, uint64_t> sessions_;
  std::vector<Send> sent_;
};

}  // namespace pipeyard::scheduler
