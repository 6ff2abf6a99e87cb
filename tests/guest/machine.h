// What the guests' tests need of the machine that they run on: its real nodes, and mappings whose
// pages can be asked for.
//
// Everything here is of the host's kernel, nothing of it is emulated. Thread safety: none is
// needed.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "workloads/memory/weight_table.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/topology.h"

namespace pipeyard {

inline numa::Topology RealTopology() { return numa::ReadTopology(numa::HostFiles()).value(); }

inline uint64_t HostPageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

// This thread runs on `cpu` from now on. False: it cannot.
inline bool RunOn(numa::CpuId cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  return ::sched_setaffinity(0, sizeof(cpus), &cpus) == 0;
}

// Writes weights of nodes 0, 1, ... where the kernel keeps them. False: it has no such place.
inline bool WriteHostWeights(const std::vector<int>& weights) {
  for (size_t node = 0; node < weights.size(); ++node) {
    std::ofstream file(memory::kWeightDir + std::string("node") + std::to_string(node));
    file << weights[node] << std::flush;
    if (!file) return false;
  }
  return true;
}

// An anonymous private mapping in small pages.
class Mapping {
 public:
  explicit Mapping(uint64_t pages) : pages_(pages) {
    void* const at = ::mmap(nullptr, pages * HostPageBytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    if (base_ != nullptr) ::madvise(base_, size_bytes(), MADV_NOHUGEPAGE);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != nullptr) ::munmap(base_, size_bytes());
  }

  bool ok() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return pages_ * HostPageBytes(); }

  void Touch() {
    for (uint64_t i = 0; i < pages_; ++i) base_[i * HostPageBytes()] = std::byte{1};
  }
  // The node of each page, or a negative errno, as the kernel answers.
  std::vector<int> Nodes() const {
    std::vector<void*> addresses;
    for (uint64_t i = 0; i < pages_; ++i) addresses.push_back(base_ + i * HostPageBytes());
    std::vector<int> nodes(pages_, -1);
    if (numa::SystemNumaKernel().QueryNodes(addresses, nodes) != 0) nodes.clear();
    return nodes;
  }

 private:
  const uint64_t pages_;
  std::byte* base_ = nullptr;
};

}  // namespace pipeyard
