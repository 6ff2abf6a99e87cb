#include "controller/scheduler/testing/scheduler_fixture.h"

#include <gtest/gtest.h>

namespace pipeyard::scheduler {

SchedulerFixture::SchedulerFixture() {
  scheduler_ = std::make_unique<Scheduler>(store_.identity(), [this] { return ids_.Next(); });
  clock_.Advance(Seconds(1));
}

Actions SchedulerFixture::Handle(const Event& event) {
  Actions actions = scheduler_->Handle(event, now());
  Apply(actions);
  return actions;
}

Actions SchedulerFixture::Restart() {
  store_.Reopen();
  scheduler_ = std::make_unique<Scheduler>(store_.identity(), [this] { return ids_.Next(); });
  sessions_.clear();
  Actions actions = scheduler_->Recover(store_.LoadActiveRuns().value(), now());
  Apply(actions);
  return actions;
}

void SchedulerFixture::Apply(const Actions& actions) {
  const Status applied = store_.Apply(actions.mutations);
  if (!applied.ok()) ADD_FAILURE() << applied.ToString();
  sent_.insert(sent_.end(), actions.sends.begin(), actions.sends.end());
}

Actions SchedulerFixture::Attach(uint32_t n, const std::vector<v1::HeldAttempt>& held) {
  v1::Hello hello = HelloOf(TestHost(n));
  for (const v1::HeldAttempt& item : held) *hello.add_held() = item;
  sessions_[n] = next_session_++;
  return Handle(HostAttached{HostId(n), sessions_[n], hello});
}

Actions SchedulerFixture::Detach(uint32_t n) {
  return Handle(HostDetached{HostId(n), sessions_[n]});
}

std::string SchedulerFixture::Submit(const spec::Sweep& sweep, const std::vector<uint32_t>& hosts,
                                     uint32_t n) {
  std::vector<HostView> views;
  for (const uint32_t host : hosts) views.push_back(TestHost(host));
  Result<BuiltRun> built = BuildRun(sweep, views, TestRequest(n));
  EXPECT_TRUE(built.ok()) << built.status().ToString();
  if (!built.ok()) return "";
  Handle(RunSubmitted{built->run, "cli:test"});
  return built->run.run_id;
}

Actions SchedulerFixture::Accept(uint32_t n, const std::string& attempt_id) {
  AcceptReceived event{HostId(n), {}};
  event.accepted.set_attempt_id(attempt_id);
  event.accepted.set_epoch(store_.identity().epoch);
  return Handle(event);
}

Actions SchedulerFixture::Refuse(uint32_t n, const std::string& attempt_id,
                                 v1::Refused::Reason reason) {
  RefusalReceived event{HostId(n), {}};
  event.refused.set_attempt_id(attempt_id);
  event.refused.set_epoch(store_.identity().epoch);
  event.refused.set_reason(reason);
  event.refused.set_text("said the agent");
  return Handle(event);
}

Actions SchedulerFixture::Finish(uint32_t n, const std::string& attempt_id, v1::Outcome outcome,
                                 const std::string& reason_code) {
  return Handle(FrameReceived{
      HostId(n), FinalFrame(store_.identity().store_id, attempt_id, outcome, reason_code)});
}

Actions SchedulerFixture::Beat(uint32_t n, const std::vector<v1::HeldAttempt>& held) {
  HeartbeatReceived event{HostId(n), {}};
  for (const v1::HeldAttempt& item : held) *event.heartbeat.add_held() = item;
  return Handle(event);
}

v1::HeldAttempt SchedulerFixture::Held(const std::string& attempt_id, v1::AttemptPhase phase,
                                       Nanos running) const {
  v1::HeldAttempt held;
  held.set_attempt_id(attempt_id);
  held.set_store_id(store_.identity().store_id);
  held.set_phase(phase);
  held.set_running_ns(running.count());
  return held;
}

v1::Assign SchedulerFixture::LastAssign(uint32_t n) const {
  for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
    if (it->host_id == HostId(n) && it->message.has_assign()) return it->message.assign();
  }
  ADD_FAILURE() << "nothing was assigned to host " << n;
  return {};
}

}  // namespace pipeyard::scheduler
