#include "controller/analysis/fisher.h"

#include <algorithm>
#include <cmath>

namespace pipeyard::analysis {
namespace {

double LogChoose(uint64_t n, uint64_t k) {
  // lgamma() writes the global signgam; lgamma_r() does not.
  int sign = 0;
  return ::lgamma_r(static_cast<double>(n) + 1, &sign) -
         ::lgamma_r(static_cast<double>(k) + 1, &sign) -
         ::lgamma_r(static_cast<double>(n - k) + 1, &sign);
}

}  // namespace

double FisherExact(uint64_t hits_a, uint64_t total_a, uint64_t hits_b, uint64_t total_b) {
  if (total_a == 0 || total_b == 0) return 1;
  const uint64_t hits = hits_a + hits_b;
  const uint64_t total = total_a + total_b;
  const uint64_t least = hits > total_b ? hits - total_b : 0;
  const uint64_t most = std::min(hits, total_a);
  const auto log_probability = [&](uint64_t in_a) {
    return LogChoose(total_a, in_a) + LogChoose(total_b, hits - in_a) - LogChoose(total, hits);
  };
  // Tables that are equally likely up to rounding count as equally likely.
  const double seen = log_probability(hits_a) + 1e-7;
  double p = 0;
  for (uint64_t in_a = least; in_a <= most; ++in_a) {
    const double log_p = log_probability(in_a);
    if (log_p <= seen) p += std::exp(log_p);
  }
  return std::min(1.0, p);
}

}  // namespace pipeyard::analysis
