#include "workloads/numa/affinity.h"

#include <sched.h>

#include <cerrno>
#include <memory>

namespace pipeyard::numa {
namespace {

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

size_t CpuSetBytes() { return CPU_ALLOC_SIZE(kMaxCpu + 1); }

// Empty; nullptr where there is no memory.
CpuSet MakeCpuSet() {
  CpuSet set(CPU_ALLOC(kMaxCpu + 1));
  if (set != nullptr) CPU_ZERO_S(CpuSetBytes(), set.get());
  return set;
}

}  // namespace

int SetAffinity(const std::vector<CpuId>& cpus) {
  const CpuSet set = MakeCpuSet();
  if (set == nullptr) return ENOMEM;
  for (const CpuId cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), CpuSetBytes(), set.get());
  return ::sched_setaffinity(0, CpuSetBytes(), set.get()) == 0 ? 0 : errno;
}

Result<std::vector<CpuId>> GetAffinity() {
  const CpuSet set = MakeCpuSet();
  if (set == nullptr) return ErrnoStatus("sched_getaffinity", ENOMEM);
  if (::sched_getaffinity(0, CpuSetBytes(), set.get()) != 0) {
    return ErrnoStatus("sched_getaffinity", errno);
  }
  std::vector<CpuId> cpus;
  for (CpuId cpu = 0; cpu <= kMaxCpu; ++cpu) {
    if (CPU_ISSET_S(static_cast<size_t>(cpu), CpuSetBytes(), set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace pipeyard::numa
