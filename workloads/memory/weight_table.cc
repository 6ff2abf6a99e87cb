#include "workloads/memory/weight_table.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>

namespace pipeyard::memory {
namespace {

// weightiness in the kernel: how finely bandwidth becomes a weight.
constexpr uint64_t kWeightScale = 32;

// Without the line's end.
std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

std::string Shown(std::string_view text) {
  return "'" + std::string(FirstLine(text).substr(0, 40)) + "'";
}

Result<uint8_t> ReadWeight(std::string_view text) {
  const std::string_view digits = FirstLine(text);
  int weight = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || weight < 1 || weight > 255)
    return InvalidArgument(Shown(text) + ": not a weight of 1..255");
  return static_cast<uint8_t>(weight);
}

Result<bool> ReadYesOrNo(std::string_view text) {
  const std::string_view word = FirstLine(text);
  for (const std::string_view yes : {"Y", "y", "1", "true"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"N", "n", "0", "false"}) {
    if (word == no) return false;
  }
  return InvalidArgument(Shown(text) + ": neither Y, 1, true nor N, 0, false");
}

}  // namespace

Result<HostWeights> ReadHostWeights(const numa::ReadFile& read, numa::NodeMask nodes) {
  HostWeights host;
  for (const numa::NodeId node : nodes.Nodes()) {
    const std::string path = kWeightDir + ("node" + std::to_string(node));
    const Result<std::string> text = read(path);
    if (!text.ok()) {
      if (text.status().code() == StatusCode::kNotFound) continue;
      return text.status();
    }
    const Result<uint8_t> weight = ReadWeight(*text);
    if (!weight.ok()) return weight.status().WithContext(path);
    host.table[node] = *weight;
    host.nodes.Add(node);
  }
  for (const std::string_view name : {"auto", "__auto_type"}) {
    const std::string path = kWeightDir + std::string(name);
    const Result<std::string> text = read(path);
    if (!text.ok()) {
      if (text.status().code() == StatusCode::kNotFound) continue;
      return text.status();
    }
    const Result<bool> is_auto = ReadYesOrNo(*text);
    if (!is_auto.ok()) return is_auto.status().WithContext(path);
    host.is_auto = *is_auto;
    break;
  }
  return host;
}

WeightTable AutoWeights(const Bandwidths& bandwidths, numa::NodeMask nodes) {
  WeightTable table;
  uint64_t sum = 0;
  for (const numa::NodeId node : nodes.Nodes()) sum += bandwidths[static_cast<size_t>(node)];
  if (sum == 0) return table;
  unsigned divisor = 0;
  for (const numa::NodeId node : nodes.Nodes()) {
    const uint64_t weight = kWeightScale * bandwidths[static_cast<size_t>(node)] / sum;
    table[node] = static_cast<uint8_t>(std::max<uint64_t>(weight, 1));
    divisor = std::gcd(divisor, static_cast<unsigned>(table[node]));
  }
  for (const numa::NodeId node : nodes.Nodes())
    table[node] = static_cast<uint8_t>(table[node] / divisor);
  return table;
}

Status WeightControl::WriteWeight(numa::NodeId node, std::string_view text) {
  if (node < 0 || node >= numa::kMaxNodes || !nodes_.Contains(node))
    return InvalidArgument("node " + std::to_string(node) + " has no weight: it is not there");
  PIPEYARD_ASSIGN_OR_RETURN(const uint8_t weight, ReadWeight(text));
  table_[node] = weight;
  is_auto_ = false;
  return Status::Ok();
}

Status WeightControl::WriteAuto(std::string_view text) {
  PIPEYARD_ASSIGN_OR_RETURN(const bool wanted, ReadYesOrNo(text));
  if (wanted) {
    const bool is_any_known =
        std::any_of(bandwidths_.begin(), bandwidths_.end(), [](uint32_t mb) { return mb > 0; });
    if (!is_any_known) return Unavailable("auto weights: no node's bandwidth is known (ENODEV)");
  }
  is_auto_ = wanted;
  Recompute();
  return Status::Ok();
}

void WeightControl::ReportBandwidth(numa::NodeId node, uint32_t read_mb_per_s,
                                    uint32_t write_mb_per_s) {
  bandwidths_[static_cast<size_t>(node)] = std::min(read_mb_per_s, write_mb_per_s);
  Recompute();
}

void WeightControl::OnlineNode(numa::NodeId node) {
  if (!nodes_.Contains(node)) table_[node] = 1;
  nodes_.Add(node);
  Recompute();
}

void WeightControl::OfflineNode(numa::NodeId node) {
  nodes_.Remove(node);
  Recompute();
}

void WeightControl::Recompute() {
  if (is_auto_) table_ = AutoWeights(bandwidths_, nodes_);
}

}  // namespace pipeyard::memory
