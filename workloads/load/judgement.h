// Judgement: how an attempt ended as the workload sees it, before it becomes a v1::WorkerResult.
//
// Thread safety: a value.
#pragma once

#include <string>
#include <utility>

#include "pipeyard/v1/attempt.pb.h"

namespace pipeyard::load {

struct Judgement {
  v1::Outcome outcome = v1::OUTCOME_OK;
  // A word of docs/PROTOCOL.md, "Reasons"; empty for ok.
  std::string reason_code;
  // For people: what was met and what to do.
  std::string reason_text;

  bool ok() const { return outcome == v1::OUTCOME_OK; }
};

// The workload failed.
inline Judgement Failed(std::string code, std::string text) {
  return {v1::OUTCOME_FAILED, std::move(code), std::move(text)};
}
// The commanded conditions were not obtained.
inline Judgement Void(std::string code, std::string text) {
  return {v1::OUTCOME_VOID, std::move(code), std::move(text)};
}
// This host cannot do what the variant commands.
inline Judgement NotApplicable(std::string code, std::string text) {
  return {v1::OUTCOME_NOT_APPLICABLE, std::move(code), std::move(text)};
}

}  // namespace pipeyard::load
