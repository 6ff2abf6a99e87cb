#include "controller/scheduler/testing/model_agent.h"

#include <algorithm>
#include <utility>

#include "controller/scheduler/testing/builders.h"

namespace pipeyard::scheduler {

ModelAgent::ModelAgent(uint32_t n, std::string store_id, std::mt19937_64& dice, const Clock& clock)
    : n_(n),
      host_id_(TestHost(n).record.host_id),
      store_id_(std::move(store_id)),
      dice_(dice),
      clock_(clock) {}

void ModelAgent::Link(uint64_t session, uint64_t epoch) {
  is_linked_ = true;
  session_ = session;
  newest_epoch_ = epoch;
  v1::Hello hello = HelloOf(TestHost(n_));
  *hello.mutable_held() = Held();
  up.push_back(HostAttached{host_id_, session, hello});
  for (auto& [id, job] : jobs_) job.sent = job.acked;
  SendFrames();
}

void ModelAgent::Unlink() {
  is_linked_ = false;
  up.clear();
  down.clear();
}

void ModelAgent::Restart() {
  Unlink();
  std::vector<std::string> running;
  for (const auto& [id, job] : jobs_) {
    if (job.phase != v1::ATTEMPT_PHASE_SPOOLED) running.push_back(id);
  }
  for (const std::string& id : running) EndJob(id, v1::OUTCOME_VOID, "agent_restarted");
}

void ModelAgent::OnAssign(const v1::Assign& assign) {
  if (assign.epoch() < newest_epoch_) return;
  if (!jobs_.contains(assign.attempt_id())) {
    ran_twice_ = ran_twice_ || finished_.contains(assign.attempt_id());
    if (IsRunning()) return Refuse(assign, v1::Refused::REASON_BUSY);
    if (Chance(0.05)) return Refuse(assign, v1::Refused::REASON_DISK);
    if (Chance(0.02)) return Refuse(assign, v1::Refused::REASON_NOT_APPLICABLE);
    jobs_[assign.attempt_id()].started = clock_.Now();
  }
  AcceptReceived event{host_id_, {}};
  event.accepted.set_attempt_id(assign.attempt_id());
  event.accepted.set_epoch(assign.epoch());
  up.push_back(event);
}

void ModelAgent::OnCancel(const v1::Cancel& cancel) {
  EndJob(cancel.attempt_id(), v1::OUTCOME_CANCELED, "");
}

void ModelAgent::OnAck(const v1::Ack& ack) {
  const auto it = jobs_.find(ack.attempt_id());
  if (it == jobs_.end()) return;
  it->second.acked = std::max(it->second.acked, ack.through());
  if (it->second.acked < it->second.frames.size()) return;
  finished_.insert(ack.attempt_id());
  jobs_.erase(it);
}

void ModelAgent::Beat() {
  if (!is_linked_) return;
  HeartbeatReceived event{host_id_, {}};
  *event.heartbeat.mutable_held() = Held();
  up.push_back(event);
}

void ModelAgent::FinishJob() {
  const auto it = std::ranges::find_if(
      jobs_, [](const auto& entry) { return entry.second.phase != v1::ATTEMPT_PHASE_SPOOLED; });
  if (it == jobs_.end()) return;
  static constexpr v1::Outcome kOutcomes[] = {v1::OUTCOME_VOID, v1::OUTCOME_FAILED,
                                              v1::OUTCOME_TIMEOUT};
  const v1::Outcome outcome = Chance(0.7) ? v1::OUTCOME_OK : kOutcomes[Below(3)];
  const bool is_crash = outcome == v1::OUTCOME_FAILED && Chance(0.1);
  EndJob(std::string(it->first), outcome, is_crash ? "host_crashed" : "");
}

bool ModelAgent::IsRunning() const {
  return std::ranges::any_of(
      jobs_, [](const auto& entry) { return entry.second.phase != v1::ATTEMPT_PHASE_SPOOLED; });
}

google::protobuf::RepeatedPtrField<v1::HeldAttempt> ModelAgent::Held() const {
  google::protobuf::RepeatedPtrField<v1::HeldAttempt> held;
  for (const auto& [id, job] : jobs_) {
    v1::HeldAttempt& item = *held.Add();
    item.set_attempt_id(id);
    item.set_store_id(store_id_);
    item.set_phase(job.phase);
    item.set_running_ns((clock_.Now() - job.started).count());
    item.set_spooled_through(job.frames.size());
  }
  return held;
}

void ModelAgent::Refuse(const v1::Assign& assign, v1::Refused::Reason reason) {
  RefusalReceived event{host_id_, {}};
  event.refused.set_attempt_id(assign.attempt_id());
  event.refused.set_epoch(assign.epoch());
  event.refused.set_reason(reason);
  up.push_back(event);
}

void ModelAgent::EndJob(const std::string& id, v1::Outcome outcome, const std::string& reason) {
  const auto it = jobs_.find(id);
  if (it == jobs_.end() || it->second.phase == v1::ATTEMPT_PHASE_SPOOLED) return;
  Job& job = it->second;
  job.phase = v1::ATTEMPT_PHASE_SPOOLED;
  const uint32_t num_frames = 1 + Below(3);
  for (uint32_t i = 1; i <= num_frames; ++i) {
    v1::Frame frame = FinalFrame(store_id_, id, outcome, reason);
    frame.set_sequence(i);
    frame.set_is_final(i == num_frames);
    if (i != num_frames) frame.clear_end();
    if (i != 1) frame.clear_metrics();
    job.frames.push_back(std::move(frame));
  }
  SendFrames();
}

void ModelAgent::SendFrames() {
  if (!is_linked_) return;
  for (auto& [id, job] : jobs_) {
    for (; job.sent < job.frames.size(); ++job.sent) {
      up.push_back(FrameReceived{host_id_, job.frames[job.sent]});
    }
  }
}

}  // namespace pipeyard::scheduler
