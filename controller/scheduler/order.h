// The order of the trials of one host: a pure function of the order's kind and seed, the host's id
// and the variants. A second implementation can give the same order from this text.
//
// Random numbers: SplitMix64 (Steele, Lea & Flood 2014): state += 0x9e3779b97f4a7c15, then
// z = state; z = (z ^ z>>30) * 0xbf58476d1ce4e5b9; z = (z ^ z>>27) * 0x94d049bb133111eb;
// z ^ z>>31. The first state is seed ^ FNV-1a-64(host id). One generator a host, drawn from in the
// order below. Below(n): draws until r < 2^64 - (2^64 mod n), then r mod n. Shuffle of k items: for
// i = k-1 down to 1, swap item i with item Below(i + 1).
//
// blocked: the variants of one comparison (equal `comparison`, which is given only where there is a
// compared factor) are one group, every other variant is a group of its own; groups and the arms in
// them begin in file order, and each shuffle starts from what the one before left. Block 1, 3, ...:
// shuffle the groups, then, in the new order of groups, shuffle the arms of each group of two or
// more. Block 2, 4, ...: the order of the block before, reversed. Each variant comes once a block;
// arms of a comparison are adjacent. random: all trials, by repetition, then file order, shuffled
// once; all in block 1. listed: by repetition, then file order; a repetition is a block.
//
// Thread safety: pure functions; the generator is a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/spec/sweep.h"

namespace pipeyard::scheduler {

class OrderGenerator {
 public:
  OrderGenerator(uint64_t seed, std::string_view host_id);
  uint64_t Next();
  // Uniform in [0, n). Precondition: n > 0.
  uint64_t Below(uint64_t n);

  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  uint64_t state_;
};

// A variant that applies to the host; those that do not take no part in its order.
struct OrderVariant {
  uint32_t variant_index = 0;
  bool is_arm = false;     // has the compared factor
  std::string comparison;  // meaningful for an arm
};

struct OrderedTrial {
  uint32_t variant_index = 0;
  uint32_t trial_index = 0;  // from 1, within the cell, in order of execution
  uint32_t block = 0;        // from 1
  friend bool operator==(const OrderedTrial&, const OrderedTrial&) = default;
};

// In order of execution. `variants` are in file order.
std::vector<OrderedTrial> TrialOrder(spec::OrderKind kind, std::span<const OrderVariant> variants,
                                     uint32_t repetitions, uint64_t seed, std::string_view host_id);

// What a workload may randomize follows from the run's seed, host and block, so the arms of one
// block get the same.
uint64_t TrialSeed(uint64_t order_seed, std::string_view host_id, uint32_t block);

// "blocked", "random", "listed".
const char* Name(spec::OrderKind kind);

}  // namespace pipeyard::scheduler
