#include "proto/settings/text.h"

#include <algorithm>
#include <array>

namespace pipeyard::settings {
namespace {

constexpr size_t kMaxCompared = 64;

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > kMaxCompared || b.size() > kMaxCompared) return limit;
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference >= limit) return limit;
  using Row = std::array<size_t, kMaxCompared + 1>;
  Row before_last{};
  Row last{};
  Row current{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = current;
  }
  return std::min(last[b.size()], limit);
}

}  // namespace pipeyard::settings
