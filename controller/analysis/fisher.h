// Fisher's exact test of two proportions: is one arm void (or failed) more often than the other?
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace pipeyard::analysis {

// Two-sided p: the sum of the probabilities of all tables with these margins that are no more
// likely than the one seen (as R's fisher.test). Preconditions: hits <= total on both sides. 1
// where a side is empty.
double FisherExact(uint64_t hits_a, uint64_t total_a, uint64_t hits_b, uint64_t total_b);

}  // namespace pipeyard::analysis
