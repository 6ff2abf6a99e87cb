// What a weighted bulk allocation would ask of each node: planned by the engine's own code, printed
// as a table or as JSON ("pipeyard.explain_bulk/v1", docs/JSON.md).
//
// It allocates nothing. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/options/options.h"
#include "workloads/memory/interleave.h"
#include "workloads/memory/policy.h"

namespace pipeyard::cli {

// Single steps are as many calls as pages, and each is printed.
inline constexpr uint64_t kMaxExplainedSteps = 100'000;

struct BulkQuestion {
  memory::NodeWeights weights;
  memory::InterleaveState start;
  uint64_t pages = 0;
  memory::BulkAlgorithm algorithm = memory::BulkAlgorithm::kSplitCarry;
};

struct BulkAnswer {
  std::vector<memory::BulkCall> calls;
  memory::InterleaveState end;
  memory::InterleaveState end_canonical;
};

// Errors: kInvalidArgument names the option and what it takes.
Result<BulkQuestion> ReadBulkQuestion(const options::Parsed& parsed);

BulkAnswer AnswerBulk(const BulkQuestion& question);

std::string BulkJson(const BulkQuestion& question, const BulkAnswer& answer);
std::string BulkText(const BulkQuestion& question, const BulkAnswer& answer);

}  // namespace pipeyard::cli
