// Frames: stored in order, each once, acknowledged behind their commit.
#include <fmt/format.h>

#include <utility>

#include "controller/scheduler/scheduler.h"

namespace pipeyard::scheduler {

void Scheduler::On(const FrameReceived& event) {
  HostState& host = Host(event.host_id);
  const v1::Frame& frame = event.frame;
  if (frame.store_id() != identity_.store_id) {
    Note(fmt::format("host {}: frame of store {} ignored: this is store {}", host.name,
                     frame.store_id(), identity_.store_id));
    return;
  }
  if (frame.sequence() == 0) {
    Note(fmt::format("host {}: frame of attempt {} without a number ignored", host.name,
                     frame.attempt_id()));
    return;
  }
  if (!attempts_.contains(frame.attempt_id())) return OnUnknownFrame(event);
  Attempt* attempt = FindAttempt(event.host_id, frame.attempt_id(), "frame");
  if (attempt == nullptr) return;
  StoreFrame(host, *attempt, frame);
  Dispatch(host);
}

void Scheduler::StoreFrame(HostState& host, Attempt& attempt, const v1::Frame& frame) {
  if (frame.sequence() <= attempt.frames_through) {
    return Acknowledge(host.host_id, attempt.attempt_id, attempt.frames_through);
  }
  if (frame.sequence() != attempt.frames_through + 1 || attempt.is_final_stored) {
    return OnGap(host, attempt, frame);
  }
  // A frame says that the agent took the attempt, whatever became of its Accepted.
  if (!attempt.outcome) MarkAccepted(attempt);
  actions_.mutations.push_back(storage::StoreFrame{frame, now_.utc.count()});
  attempt.frames_through = frame.sequence();
  attempt.last_news = now_.monotonic;
  attempt.metrics.insert(attempt.metrics.end(), frame.metrics().begin(), frame.metrics().end());
  Acknowledge(host.host_id, attempt.attempt_id, attempt.frames_through);
  if (!frame.is_final()) return;
  attempt.is_final_stored = true;
  host.occupied_by.erase(attempt.attempt_id);
  EndByAgent(attempt, frame);
  attempt.metrics = {};
}

void Scheduler::OnGap(HostState& host, Attempt& attempt, const v1::Frame& frame) {
  if (!attempt.gap_session || *attempt.gap_session == host.session) {
    attempt.gap_session = host.session;
    actions_.closes.push_back(
        {host.host_id, fmt::format("frame {} of attempt {} came where {} was due", frame.sequence(),
                                   attempt.attempt_id, attempt.frames_through + 1)});
    return;
  }
  if (!attempt.outcome) {
    MarkAccepted(attempt);
    EndAttempt(attempt,
               {storage::Outcome::kLost, "frames_lost",
                fmt::format("frames {} to {} are not stored and the agent has them no more",
                            attempt.frames_through + 1, frame.sequence() - 1)});
  }
  actions_.mutations.push_back(storage::StoreOrphan{host.host_id, frame, now_.utc.count()});
  if (frame.is_final()) host.occupied_by.erase(attempt.attempt_id);
  Acknowledge(host.host_id, attempt.attempt_id, frame.sequence());
}

void Scheduler::EndByAgent(Attempt& attempt, const v1::Frame& final_frame) {
  const Place place = Find(attempt);
  const v1::VariantSettings& variant =
      place.run->header.variants[place.cell->variant_index].settings;
  const Judgement judgement =
      final_frame.has_end()
          ? Judge(variant.workload(), final_frame.end(), attempt.metrics)
          : Judgement{storage::Outcome::kFailed, std::string(kReasonMalformedResult),
                      "the final frame has no end"};
  if (!attempt.outcome) return EndAttempt(attempt, judgement);
  // Given up as lost, and back before another attempt gave a sample.
  if (attempt.outcome == storage::Outcome::kLost && judgement.outcome == storage::Outcome::kOk &&
      !IsTerminal(place.trial->state)) {
    attempt.outcome = judgement.outcome;
    place.run->was_started = true;
    actions_.mutations.push_back(
        storage::EndAttempt{attempt.attempt_id, judgement.outcome, "", "", now_.utc.count()});
    ApplyOutcome(attempt, judgement);
  }
}

// The run has ended, or the store was restored from a backup that is older than the attempt. Frames
// of one attempt come in order, from the first that is not acknowledged, so each may be taken as it
// comes.
void Scheduler::OnUnknownFrame(const FrameReceived& event) {
  if (!event.is_known.has_value()) {
    actions_.lookups.push_back({event});
    return;
  }
  if (*event.is_known) {
    actions_.mutations.push_back(storage::StoreFrame{event.frame, now_.utc.count()});
  } else {
    actions_.mutations.push_back(
        storage::StoreOrphan{event.host_id, event.frame, now_.utc.count()});
    Note(fmt::format(
        "host {}: frame {} of attempt {} set aside: this store assigned it but does not "
        "know it",
        Host(event.host_id).name, event.frame.sequence(), event.frame.attempt_id()));
  }
  Acknowledge(event.host_id, event.frame.attempt_id(), event.frame.sequence());
}

void Scheduler::Acknowledge(const std::string& host_id, const std::string& attempt_id,
                            uint64_t through) {
  v1::ControllerMessage message;
  message.mutable_ack()->set_attempt_id(attempt_id);
  message.mutable_ack()->set_through(through);
  actions_.sends.push_back({host_id, std::move(message)});
}

}  // namespace pipeyard::scheduler
