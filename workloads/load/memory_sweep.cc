#include "workloads/load/memory_sweep.h"

namespace pipeyard::load {
namespace {

// Two doubles or integers: what every 64-bit processor loads at once.
typedef double Doubles __attribute__((vector_size(16), may_alias));
typedef uint64_t Integers __attribute__((vector_size(16), may_alias));

// Of one turn of the loops: a cache line of 64 bytes. Written out, so that no compiler keeps the
// four in memory.
constexpr size_t kLanes = 4;

// The compiler may neither replace the loop around it by a call (memcpy, memset) nor keep a store
// back.
inline void KeepLoop() { asm volatile("" ::: "memory"); }

uint64_t ReadPage(const std::byte* page, size_t page_bytes) {
  const auto* a = reinterpret_cast<const Integers*>(page);
  const size_t count = page_bytes / sizeof(Integers);
  Integers sum0 = {};
  Integers sum1 = {};
  Integers sum2 = {};
  Integers sum3 = {};
  for (size_t i = 0; i < count; i += kLanes) {
    sum0 ^= a[i];
    sum1 ^= a[i + 1];
    sum2 ^= a[i + 2];
    sum3 ^= a[i + 3];
  }
  const Integers sum = sum0 ^ sum1 ^ sum2 ^ sum3;
  return sum[0] ^ sum[1];
}

void WritePage(std::byte* page, size_t page_bytes, double value) {
  auto* a = reinterpret_cast<Doubles*>(page);
  const size_t count = page_bytes / sizeof(Doubles);
  const Doubles values = {value, value};
  for (size_t i = 0; i < count; i += kLanes) {
    a[i] = values;
    a[i + 1] = values;
    a[i + 2] = values;
    a[i + 3] = values;
    KeepLoop();
  }
}

void CopyPage(std::byte* to, const std::byte* from, size_t page_bytes) {
  auto* a = reinterpret_cast<Doubles*>(to);
  const auto* b = reinterpret_cast<const Doubles*>(from);
  const size_t count = page_bytes / sizeof(Doubles);
  for (size_t i = 0; i < count; i += kLanes) {
    a[i] = b[i];
    a[i + 1] = b[i + 1];
    a[i + 2] = b[i + 2];
    a[i + 3] = b[i + 3];
    KeepLoop();
  }
}

void TriadPage(std::byte* to, const std::byte* from, const std::byte* scaled, size_t page_bytes) {
  auto* a = reinterpret_cast<Doubles*>(to);
  const auto* b = reinterpret_cast<const Doubles*>(from);
  const auto* c = reinterpret_cast<const Doubles*>(scaled);
  const size_t count = page_bytes / sizeof(Doubles);
  const Doubles scalar = {kSweepScalar, kSweepScalar};
  for (size_t i = 0; i < count; i += kLanes) {
    a[i] = b[i] + scalar * c[i];
    a[i + 1] = b[i + 1] + scalar * c[i + 1];
    a[i + 2] = b[i + 2] + scalar * c[i + 2];
    a[i + 3] = b[i + 3] + scalar * c[i + 3];
    KeepLoop();
  }
}

}  // namespace

SweepOperation SweepOperationOf(std::string_view text) {
  if (text == "write") return SweepOperation::kWrite;
  if (text == "copy") return SweepOperation::kCopy;
  return text == "triad" ? SweepOperation::kTriad : SweepOperation::kRead;
}

void FillPage(std::byte* page, size_t page_bytes, int array_index) {
  WritePage(page, page_bytes, array_index);
}

uint64_t SweepPage(SweepOperation operation, std::byte* const (&pages)[kMaxArrays],
                   size_t page_bytes) {
  switch (operation) {
    case SweepOperation::kRead:
      return ReadPage(pages[0], page_bytes);
    case SweepOperation::kWrite:
      WritePage(pages[0], page_bytes, kSweepScalar);
      break;
    case SweepOperation::kCopy:
      CopyPage(pages[0], pages[1], page_bytes);
      break;
    case SweepOperation::kTriad:
      TriadPage(pages[0], pages[1], pages[2], page_bytes);
      break;
  }
  return 0;
}

}  // namespace pipeyard::load
