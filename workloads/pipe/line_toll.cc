#include "workloads/pipe/line_toll.h"

#include <algorithm>
#include <limits>

#include "workloads/memory/monotonic.h"

namespace pipeyard::pipe {
namespace {

void Turn(uint64_t turns) {
  for (uint64_t i = 0; i < turns; ++i) asm volatile("" : : "r"(i) : "memory");
}

// Nanoseconds of a thousand million turns. The fastest of several stretches: the others were
// interrupted.
uint64_t MeasureTurns() {
  constexpr int kStretches = 20;
  constexpr uint64_t kTurns = 100'000;
  int64_t best_ns = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kStretches; ++i) {
    const int64_t start_ns = memory::MonotonicNanos();
    Turn(kTurns);
    best_ns = std::min(best_ns, memory::MonotonicNanos() - start_ns);
  }
  return static_cast<uint64_t>(std::max<int64_t>(best_ns, 1)) * (1'000'000'000 / kTurns);
}

}  // namespace

LineToll::LineToll(const memory::PageAllocator& pages, Owner* owners, Nanos remote_access)
    : pages_(&pages),
      owners_(owners),
      first_offset_(pages.OffsetOf(0)),
      remote_access_ns_(remote_access.count()) {
  if (remote_access_ns_ > 0) {
    turns_per_line_ = static_cast<uint64_t>(remote_access_ns_) * 1'000'000'000 / MeasureTurns();
  }
}

static_assert(numa::kMaxVirtualCpus <= UINT16_MAX, "an owner is a virtual CPU plus 1");

void LineToll::Take(Worker& worker, uint64_t offset, uint64_t bytes) {
  const auto taker = static_cast<uint16_t>(worker.cpu() + 1);
  const bool is_remote = pages_->NodeOf(pages_->PageAt(offset)) != worker.node();
  const uint64_t begin = (offset - first_offset_) / memory::kCacheLine;
  const uint64_t end = (offset + bytes - 1 - first_offset_) / memory::kCacheLine;
  uint64_t num_remote = 0;
  for (uint64_t line = begin; line <= end; ++line) {
    const uint16_t owner = owners_[line].load(std::memory_order_relaxed);
    if (owner == taker) continue;
    owners_[line].store(taker, std::memory_order_relaxed);
    if (is_remote && owner != 0) ++num_remote;
  }
  if (num_remote == 0) return;
  worker.Count(Counter::kRemoteLines, num_remote);
  worker.Count(Counter::kRemoteAccess, num_remote * static_cast<uint64_t>(remote_access_ns_));
  Turn(num_remote * turns_per_line_);
}

}  // namespace pipeyard::pipe
