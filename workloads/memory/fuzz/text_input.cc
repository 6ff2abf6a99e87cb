#include "workloads/memory/fuzz/text_input.h"

#include <algorithm>
#include <vector>

#include "workloads/memory/policy.h"
#include "workloads/memory/weight_table.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::memory::fuzz {
namespace {

// Each file of the weight table holds the text.
std::string ReadAsWeights(std::string_view text) {
  const numa::ReadFile read = [&](const std::string&) -> Result<std::string> {
    return std::string(text);
  };
  const Result<HostWeights> weights = ReadHostWeights(read, numa::NodeMask::FromBits(3));
  if (!weights.ok()) return "";
  for (const uint8_t weight : weights->table.weights) {
    if (weight == 0) return "the host's table holds a weight of 0";
  }
  return "";
}

std::string ControlWeights(std::string_view text) {
  WeightControl control(numa::NodeMask::FromBits(7));
  static_cast<void>(control.WriteAuto(text));
  static_cast<void>(control.WriteWeight(1, text));
  return "";
}

}  // namespace

std::string RunText(std::string_view text) {
  const Result<Policy> policy = ParsePolicy(text);
  if (policy.ok()) {
    const std::string printed = FormatPolicy(*policy);
    const Result<Policy> again = ParsePolicy(printed);
    if (!again.ok()) return "printed as " + printed + ", which is refused";
    if (FormatPolicy(*again) != printed) return "printed as " + printed + ", then otherwise";
  }
  constexpr int kMax = 63;
  const Result<std::vector<int>> numbers = numa::ParseNumberList(text, kMax);
  if (numbers.ok() && std::any_of(numbers->begin(), numbers->end(),
                                  [](int number) { return number < 0 || number > kMax; })) {
    return "a number outside its range";
  }
  static_cast<void>(numa::ParseNodeMask(text));
  static_cast<void>(ParseNodeWeights(text));
  const std::string fault = ReadAsWeights(text);
  return fault.empty() ? ControlWeights(text) : fault;
}

}  // namespace pipeyard::memory::fuzz
