#include "agent/runner/frames.h"

#include <utility>

#include "agent/runner/reasons.h"
#include "agent/runner/text.h"
#include "proto/session/messages.h"

namespace pipeyard::runner {
namespace {

// Tag and length of a field, and the ids that the spool adds.
constexpr size_t kItemOverheadBytes = 8;

class FrameCutter {
 public:
  // Moves `items` into frames, through the repeated field that `field` returns.
  template <typename Items, typename Field>
  void Add(Items& items, Field field) {
    for (auto& item : items) {
      const size_t item_bytes = item.ByteSizeLong() + kItemOverheadBytes;
      if (frame_bytes_ > 0 && frame_bytes_ + item_bytes > kTargetFrameBytes) {
        frames_.emplace_back();
        frame_bytes_ = 0;
      }
      frame_bytes_ += item_bytes;
      *field(frames_.back())->Add() = std::move(item);
    }
  }

  std::vector<v1::Frame> Finish(v1::AttemptEnd end) {
    frames_.back().set_is_final(true);
    *frames_.back().mutable_end() = std::move(end);
    return std::move(frames_);
  }

 private:
  std::vector<v1::Frame> frames_ = std::vector<v1::Frame>(1);
  size_t frame_bytes_ = 0;
};

std::vector<v1::Frame> Cut(Judgement judgement, std::vector<v1::Output> outputs) {
  v1::WorkerResult& result = judgement.result;
  FrameCutter cutter;
  cutter.Add(*result.mutable_metrics(), [](v1::Frame& f) { return f.mutable_metrics(); });
  cutter.Add(*result.mutable_counters(), [](v1::Frame& f) { return f.mutable_counters(); });
  cutter.Add(*result.mutable_placements(), [](v1::Frame& f) { return f.mutable_placements(); });
  cutter.Add(*result.mutable_self_checks(), [](v1::Frame& f) { return f.mutable_self_checks(); });
  cutter.Add(*result.mutable_resolved(), [](v1::Frame& f) { return f.mutable_resolved(); });
  cutter.Add(*result.mutable_histograms(), [](v1::Frame& f) { return f.mutable_histograms(); });
  cutter.Add(outputs, [](v1::Frame& f) { return f.mutable_outputs(); });
  std::vector<v1::Frame> frames = cutter.Finish(std::move(judgement.end));
  frames.back().mutable_inert_switches()->Swap(result.mutable_inert_switches());
  return frames;
}

// The spool sets the real ones; these have the same form and length.
constexpr char kAnyId[] = "00000000-0000-7000-8000-000000000000";

Status Validate(std::vector<v1::Frame>& frames) {
  uint64_t sequence = 0;
  for (v1::Frame& frame : frames) {
    frame.set_store_id(kAnyId);
    frame.set_attempt_id(kAnyId);
    frame.set_sequence(++sequence);
    PIPEYARD_RETURN_IF_ERROR(session::ValidateFrame(frame));
    v1::AgentMessage message;
    *message.mutable_frame() = frame;
    PIPEYARD_RETURN_IF_ERROR(session::ValidateAgentMessage(message));
  }
  return Status::Ok();
}

}  // namespace

std::vector<v1::Frame> MakeFrames(Judgement judgement, std::vector<v1::Output> outputs) {
  v1::AttemptEnd end = judgement.end;
  std::vector<v1::Frame> frames = Cut(std::move(judgement), outputs);
  Status valid = Validate(frames);
  if (valid.ok()) return frames;
  // The worker's words are foreign too: none of them is kept.
  end.set_outcome(v1::OUTCOME_FAILED);
  end.set_reason_code(std::string(kBadResult));
  end.set_reason_text(Printable("the result cannot be sent: " + valid.message(), 1024));
  Judgement refused;
  refused.end = std::move(end);
  frames = Cut(std::move(refused), std::move(outputs));
  (void)Validate(frames);
  return frames;
}

}  // namespace pipeyard::runner
