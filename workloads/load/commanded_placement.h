// CommandedPlacement: what `placement.cpus` and `placement.memory` of a variant are on this host,
// how a process takes it on, and the proof that it has it.
//
// `pipeyard-worker launch` takes it on before the worker is executed, so that all of the worker's
// memory is allocated under it; the worker asks the kernel whether it holds. On an emulated
// topology CPUs and nodes are virtual: nothing is set in the kernel, and the engine obeys.
//
// Thread safety: the calling thread's affinity and policy are what is set and asked; called while
// the process has one thread, so that all later ones inherit them.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/memory/policy.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {

struct CommandedPlacement {
  bool is_emulated = false;
  // Of the trial's topology, in the order in which workers take them; empty: as inherited.
  std::vector<numa::CpuId> cpus;
  // Each worker stays on one of them.
  bool is_per_worker = false;
  // Absent: as inherited.
  std::optional<memory::Policy> memory;
};

// What one variant commands on `host`, whose host_cpus() are those of the cpuset. Node roles in
// `placement.memory` and `engine.policy` of `variant` are replaced by the nodes that have them;
// what words became goes to `result`. not_applicable/no_such_cpu, no_such_node: the topology lacks
// what is named; not_applicable/weights_not_set: the kernel's weights are others than a policy on
// target kernel gives; failed/engine_setup: no topology.
Judgement ResolvePlacement(const numa::Topology& host, const numa::ReadFile& read,
                           settings::Variant& variant, CommandedPlacement& placement,
                           v1::WorkerResult& result);

// Sets affinity and policy of this thread. not_applicable/policy_not_supported: the kernel has no
// such policy; void/placement_not_obtained: it refused.
Judgement TakePlacement(const CommandedPlacement& placement, numa::NumaKernel& kernel);
// void/placement_not_obtained: this thread has another affinity or policy than was commanded.
Judgement CheckPlacement(const CommandedPlacement& placement, numa::NumaKernel& kernel);
// This machine, with the CPUs of this process's cpuset as its host_cpus(). Errors: as
// ReadTopology().
Result<numa::Topology> HostToPlaceOn();
// Both of the above but TakePlacement(), on this machine, before a load.
Judgement ObtainPlacement(settings::Variant& variant, CommandedPlacement& placement,
                          v1::WorkerResult& result);
// The same where user memory lies on a node that the policy forbids.
Judgement CheckUserMemory(const CommandedPlacement& placement, const v1::WorkerResult& result);

// Another program that this thread starts while the object lives runs where it likes: on every CPU
// of the cpuset and under the default policy, not where the load was placed.
class Unplaced {
 public:
  // `placement` is what this thread has, and gets back. Both outlive the object.
  Unplaced(const CommandedPlacement& placement, numa::NumaKernel& kernel);
  ~Unplaced();
  Unplaced(const Unplaced&) = delete;
  Unplaced& operator=(const Unplaced&) = delete;

 private:
  const CommandedPlacement& placement_;
  numa::NumaKernel& kernel_;
};

// The CPUs of this process's cpuset, whatever its affinity is; empty where the kernel does not say.
// While the process has one thread.
std::vector<numa::CpuId> CpusOfCpuset();

// This thread on that CPU of the host alone. False where the kernel refuses.
bool PinThread(numa::CpuId cpu);
// This thread on that worker's CPU, where workers have one each. False where the kernel refuses.
bool PinWorker(const CommandedPlacement& placement, int worker_index);

}  // namespace pipeyard::load
