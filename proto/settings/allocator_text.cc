#include "proto/settings/allocator_text.h"

#include <fmt/format.h>

#include <charconv>

namespace pipeyard::settings {
namespace {

constexpr int kMaxNode = 63;

}  // namespace

Result<std::optional<int>> ReadAgedNode(std::string_view text) {
  constexpr std::string_view kAged = "aged:";
  if (text == "fresh") return std::optional<int>();
  int node = -1;
  if (text.starts_with(kAged)) {
    const std::string_view digits = text.substr(kAged.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), node);
    if (error != std::errc() || end != digits.data() + digits.size()) node = -1;
  }
  if (node < 0 || node > kMaxNode) {
    return InvalidArgument(
        fmt::format("'{}' is no state of an allocator; fresh, or aged:NODE such as aged:1 was "
                    "meant",
                    text.substr(0, 60)));
  }
  return std::optional<int>(node);
}

Status CheckAllocatorText(std::string_view text) { return ReadAgedNode(text).status(); }

}  // namespace pipeyard::settings
