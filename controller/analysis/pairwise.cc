#include "controller/analysis/pairwise.h"

#include <bit>
#include <cstddef>
#include <limits>

namespace pipeyard::analysis {
namespace {

// Doubles as integers of the same order.
int64_t OrderedKey(double value) {
  const auto bits = std::bit_cast<int64_t>(value + 0.0);
  return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
}

double FromOrderedKey(int64_t key) {
  return std::bit_cast<double>(key < 0 ? key ^ std::numeric_limits<int64_t>::max() : key);
}

// The smallest double x in [low, high] with count_up_to(x) >= k.
template <typename Count>
double SmallestReaching(double low, double high, uint64_t k, Count count_up_to) {
  int64_t from = OrderedKey(low);
  int64_t to = OrderedKey(high);
  while (from < to) {
    const auto width = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    const auto middle = static_cast<int64_t>(static_cast<uint64_t>(from) + width / 2);
    if (count_up_to(FromOrderedKey(middle)) >= k) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  // Adding 0 turns -0 into 0.
  return FromOrderedKey(from) + 0.0;
}

double Average(double x, double y) { return x / 2 + y / 2; }

}  // namespace

double KthDifference(std::span<const double> a, std::span<const double> b, uint64_t k) {
  const auto count = [&](double limit) {
    uint64_t total = 0;
    size_t reached = 0;
    for (double from : a) {
      while (reached < b.size() && b[reached] - from <= limit) ++reached;
      total += reached;
    }
    return total;
  };
  return SmallestReaching(b.front() - a.back(), b.back() - a.front(), k, count);
}

double KthWalshAverage(std::span<const double> d, uint64_t k) {
  const auto count = [&](double limit) {
    uint64_t total = 0;
    size_t reached = d.size();
    for (size_t i = 0; i < d.size(); ++i) {
      while (reached > i && Average(d[i], d[reached - 1]) > limit) --reached;
      if (reached <= i) break;
      total += reached - i;
    }
    return total;
  };
  return SmallestReaching(d.front(), d.back(), k, count);
}

}  // namespace pipeyard::analysis
