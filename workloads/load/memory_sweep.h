// What the workload `bandwidth` does to pages: plain loads and stores through the cache, in the
// order of addresses.
//
// No store bypasses the cache and no call of the C library stands in for a loop, so that the same
// instructions run whatever the operation's array is and wherever it lies. Source of copy and
// triad: STREAM (McCalpin), whose way of counting bytes it is, too: each array once, what the
// hardware fetches for a store not at all.
//
// Private to workloads/load. Thread safety: pages of different callers do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipeyard::load {

enum class SweepOperation {
  kRead,   //        a
  kWrite,  // a    = s
  kCopy,   // a    = b
  kTriad,  // a    = b + s * c
};

// "read", "write", "copy", "triad". Anything else is read: settings have checked the word.
SweepOperation SweepOperationOf(std::string_view text);

// How many arrays it goes through.
constexpr int NumArrays(SweepOperation operation) {
  if (operation == SweepOperation::kTriad) return 3;
  return operation == SweepOperation::kCopy ? 2 : 1;
}

inline constexpr int kMaxArrays = 3;

// Gives a page what the operation reads: 1 in array `b`, 2 in `c` (index 1 and 2), 0 in `a`.
void FillPage(std::byte* page, size_t page_bytes, int array_index);

// One page of each array: a, b, c, aligned to pages; those that the operation does not have are not
// looked at. Returns a number that depends on what was read, so that nothing of it can be left out.
uint64_t SweepPage(SweepOperation operation, std::byte* const (&pages)[kMaxArrays],
                   size_t page_bytes);

// s of write and triad.
inline constexpr double kSweepScalar = 3.0;

}  // namespace pipeyard::load
