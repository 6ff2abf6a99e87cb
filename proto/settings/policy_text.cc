#include "proto/settings/policy_text.h"

#include <fmt/format.h>

#include <charconv>

#include "proto/settings/node_role.h"

namespace pipeyard::settings {
namespace {

constexpr int kMaxNode = 63;
constexpr int kMaxWeight = 255;
constexpr char kMeant[] =
    "default, local, preferred:N, preferred-many:N,.., bind:N,.., interleave:N,.. or "
    "weighted-interleave:N=W,.. was meant";

Status NoPolicy(std::string_view text) {
  return InvalidArgument(fmt::format("'{}' is no policy; {}", text.substr(0, 60), kMeant));
}

// -1 where `text` is no number of 0..max.
int ReadNumber(std::string_view text, int max) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && value >= 0 && value <= max ? value : -1;
}

// Adds the nodes of "3", "0-2" or, with weights, "0=3"; a node role stands for nodes that only the
// host knows. False where the item is none of these.
bool ReadItem(std::string_view item, bool has_weights, std::set<int>& nodes) {
  if (has_weights) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) return false;
    const int node = ReadNumber(item.substr(0, equals), kMaxNode);
    const int weight = ReadNumber(item.substr(equals + 1), kMaxWeight);
    return node >= 0 && weight > 0 && nodes.insert(node).second;
  }
  if (IsNodeRole(item)) return true;
  const size_t dash = item.find('-');
  const int first = ReadNumber(item.substr(0, dash), kMaxNode);
  const int last =
      dash == std::string_view::npos ? first : ReadNumber(item.substr(dash + 1), kMaxNode);
  if (first < 0 || last < first) return false;
  for (int node = first; node <= last; ++node) nodes.insert(node);
  return true;
}

}  // namespace

Result<std::set<int>> ReadPolicyNodes(std::string_view text) {
  std::set<int> nodes;
  if (text.empty()) return nodes;
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  if (word == "default" || word == "local") {
    if (colon != std::string_view::npos) return NoPolicy(text);
    return nodes;
  }
  const bool is_weighted = word == "weighted-interleave";
  const bool is_known = is_weighted || word == "preferred" || word == "preferred-many" ||
                        word == "bind" || word == "interleave";
  if (!is_known || colon == std::string_view::npos) return NoPolicy(text);
  std::string_view list = text.substr(colon + 1);
  const bool has_weights = is_weighted && list.find('=') != std::string_view::npos;
  while (true) {
    const size_t comma = list.find(',');
    if (!ReadItem(list.substr(0, comma), has_weights, nodes)) return NoPolicy(text);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  // One node, or a role that may be one.
  const bool is_role = IsNodeRole(text.substr(colon + 1));
  if (word == "preferred" && !is_role && nodes.size() != 1) return NoPolicy(text);
  return nodes;
}

Status CheckPolicyText(std::string_view text) { return ReadPolicyNodes(text).status(); }

}  // namespace pipeyard::settings
