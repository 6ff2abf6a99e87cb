// KernelAging: the parameter `allocator: aged:NODE` for target kernel: a process that made pipes on
// a CPU of the node, closed every second of them, and holds the rest.
//
// Partial slabs vanish with what keeps them half full, so the process lives as long as the object.
// It is forked: as LoadProcesses, while the process has one thread. Which slabs the kernel filled
// is not visible; what is proved is that the pipes were made on CPUs of the node. Source:
// kernel-mechanisms.md B1, E8. Thread safety: confined to the owner's thread. Ownership: kills and
// reaps the process.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/aging_request.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_processes.h"
#include "workloads/load/memory_limit.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {

class KernelAging {
 public:
  // Returns once the pipes are as they shall be. not_applicable: no_such_node (the node has no
  // memory or no CPU of the cpuset), file_limit, memory_limit, pipe_size_limit.
  // failed/aging_failed for anything else.
  static Judgement Start(const AgingRequest& request, const numa::Topology& host,
                         std::vector<MemoryLimit>& memory, std::unique_ptr<KernelAging>& aging);

  // What the variant's `allocator` asks for; `aging` stays empty for `fresh`.
  static Judgement StartFor(const settings::Variant& variant, uint64_t num_pipes,
                            uint64_t num_makers, std::vector<MemoryLimit>& memory,
                            std::unique_ptr<KernelAging>& aging);

  KernelAging(const KernelAging&) = delete;
  KernelAging& operator=(const KernelAging&) = delete;

  // Adds the counter `aged_pipes`: those that are held.
  void Describe(v1::WorkerResult& result) const;
  // After the load: void/aging_lost where the process has ended meanwhile.
  Judgement Conclude();

 private:
  explicit KernelAging(int64_t num_held) : num_held_(num_held) {}

  const int64_t num_held_;
  LoadProcesses process_;
};

}  // namespace pipeyard::load
