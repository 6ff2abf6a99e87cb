#include "workloads/numa/node_mask.h"

#include <algorithm>
#include <charconv>

namespace pipeyard::numa {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// -1 where `text` is no number or above `max`.
int ParseNumber(std::string_view text, int max) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max)
    return -1;
  return value;
}

}  // namespace

NodeMask NodeMask::Of(std::initializer_list<NodeId> nodes) {
  NodeMask mask;
  for (const NodeId node : nodes) mask.Add(node);
  return mask;
}

std::vector<NodeId> NodeMask::Nodes() const {
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < kMaxNodes; ++node) {
    if (Contains(node)) nodes.push_back(node);
  }
  return nodes;
}

std::string NodeMask::ToString() const { return FormatNumberList(Nodes()); }

Result<std::vector<int>> ParseNumberList(std::string_view text, int max) {
  const std::string_view list = Trim(text);
  std::vector<int> numbers;
  if (list.empty()) return numbers;
  size_t at = 0;
  while (at <= list.size()) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view item = list.substr(at, comma - at);
    at = comma + 1;
    const size_t dash = item.find('-');
    const int first = ParseNumber(item.substr(0, dash), max);
    const int last =
        dash == std::string_view::npos ? first : ParseNumber(item.substr(dash + 1), max);
    if (first < 0 || last < first) {
      return InvalidArgument("'" + std::string(item.substr(0, 40)) +
                             "': not a number or range of a list such as 0-3,8, at most " +
                             std::to_string(max));
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string FormatNumberList(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (last > i) text += '-' + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

Result<NodeMask> ParseNodeMask(std::string_view text) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<int> nodes, ParseNumberList(text, kMaxNodes - 1));
  NodeMask mask;
  for (const int node : nodes) mask.Add(node);
  return mask;
}

}  // namespace pipeyard::numa
