// The standard normal distribution: what the approximations above the exact range need, nothing
// else.
//
// Thread safety: pure functions.
#pragma once

namespace pipeyard::analysis {

// P(Z <= z), accurate in both tails.
double NormalCdf(double z);

// The z with P(Z <= z) = p, for 1e-12 < p < 1 - 1e-12. Start: Abramowitz & Stegun 26.2.23; then
// Newton steps on erfc.
double NormalQuantile(double p);

}  // namespace pipeyard::analysis
