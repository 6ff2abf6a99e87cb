#include "workloads/memory/policy.h"

#include <algorithm>
#include <charconv>

namespace pipeyard::memory {
namespace {

using numa::PolicyMode;

struct ModeWords {
  PolicyMode mode;
  std::string_view word;
  std::string_view example;
};
constexpr ModeWords kModes[] = {
    {PolicyMode::kDefault, "default", "default"},
    {PolicyMode::kLocal, "local", "local"},
    {PolicyMode::kPreferred, "preferred", "preferred:1"},
    {PolicyMode::kPreferredMany, "preferred-many", "preferred-many:0,1"},
    {PolicyMode::kBind, "bind", "bind:0,1"},
    {PolicyMode::kInterleave, "interleave", "interleave:0,1"},
    {PolicyMode::kWeightedInterleave, "weighted-interleave", "weighted-interleave:0=3,1=1"},
};
constexpr int kMaxWeight = 255;

Status BadPolicy(std::string_view text, std::string_view why) {
  return InvalidArgument("policy '" + std::string(text.substr(0, 60)) + "': " + std::string(why));
}

bool TakesNodes(PolicyMode mode) {
  return mode != PolicyMode::kDefault && mode != PolicyMode::kLocal;
}

// -1 where `text` is no number of 0..max.
int ReadNumber(std::string_view text, int max) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && value >= 0 && value <= max ? value : -1;
}

}  // namespace

Result<Policy> ParsePolicy(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const ModeWords* mode = nullptr;
  for (const ModeWords& known : kModes) {
    if (known.word == word) mode = &known;
  }
  if (mode == nullptr) {
    return BadPolicy(text,
                     "not one of default, local, preferred:N, preferred-many:N,.., bind:N,.., "
                     "interleave:N,.., weighted-interleave:N=W,..");
  }
  Policy policy;
  policy.mode = mode->mode;
  if (!TakesNodes(mode->mode)) {
    if (colon != std::string_view::npos) {
      return BadPolicy(text, std::string(word) + " takes no nodes");
    }
    return policy;
  }
  const std::string_view list =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (mode->mode == PolicyMode::kWeightedInterleave && list.find('=') != std::string_view::npos) {
    Result<NodeWeights> weights = ParseNodeWeights(list);
    if (!weights.ok()) return BadPolicy(text, weights.status().message());
    policy.nodes = weights->nodes;
    policy.weights = weights->weights;
    policy.has_weights = true;
    return policy;
  }
  Result<numa::NodeMask> nodes = numa::ParseNodeMask(list);
  if (!nodes.ok()) return BadPolicy(text, nodes.status().message());
  if (nodes->IsEmpty()) {
    return BadPolicy(text, "names no node; write for example " + std::string(mode->example));
  }
  if (mode->mode == PolicyMode::kPreferred && nodes->Count() != 1) {
    return BadPolicy(text, "preferred takes one node; preferred-many takes several");
  }
  policy.nodes = *nodes;
  return policy;
}

std::string FormatPolicy(const Policy& policy) {
  std::string text;
  for (const ModeWords& known : kModes) {
    if (known.mode == policy.mode) text = known.word;
  }
  if (!TakesNodes(policy.mode)) return text;
  text += ':';
  if (!policy.has_weights) return text + policy.nodes.ToString();
  bool is_first = true;
  for (const numa::NodeId node : policy.nodes.Nodes()) {
    if (!is_first) text += ',';
    is_first = false;
    text += std::to_string(node) + '=' + std::to_string(policy.weights[node]);
  }
  return text;
}

Result<NodeWeights> ParseNodeWeights(std::string_view text) {
  NodeWeights read;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view item = text.substr(at, comma - at);
    at = comma + 1;
    const std::string shown = "'" + std::string(item.substr(0, 40)) + "'";
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(shown + ": not NODE=WEIGHT; every node needs a weight, as in 0=3,1=1");
    }
    const int node = ReadNumber(item.substr(0, equals), numa::kMaxNodes - 1);
    if (node < 0) {
      return InvalidArgument(shown + ": the node is not a number of 0.." +
                             std::to_string(numa::kMaxNodes - 1));
    }
    const int weight = ReadNumber(item.substr(equals + 1), kMaxWeight);
    if (weight < 1) return InvalidArgument(shown + ": the weight is not a number of 1..255");
    if (read.nodes.Contains(node)) return InvalidArgument(shown + ": the node is named twice");
    read.nodes.Add(node);
    read.weights[node] = static_cast<uint8_t>(weight);
  }
  return read;
}

}  // namespace pipeyard::memory
