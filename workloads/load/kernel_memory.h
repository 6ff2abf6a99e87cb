// Memory of the process that the host's kernel places under the attempt's policy: what target
// kernel means where a workload drives memory instead of pipes.
//
// The policy is `placement.memory`, set for the mapping (mbind); absent, pages go where the
// process's own policy puts them.
//
// Private to workloads/load. Thread safety: KernelMapping: parts that do not overlap may be mapped
// anew concurrently; the rest is pure or reads /sys. Ownership: KernelMapping unmaps at
// destruction, in its own process only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/memory/policy.h"
#include "workloads/memory/weight_table.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {

struct KernelPolicy {
  memory::Policy policy;        // kDefault: as inherited
  memory::WeightTable weights;  // those that the kernel goes by
};

// not_applicable/no_such_node where the policy names nodes that are not there;
// not_applicable/weights_not_set where it has weights that are not the host's: a process cannot
// bring its own. failed/internal for a text that is no policy, which settings let nobody write.
Judgement ReadKernelPolicy(const std::string& text, const numa::Topology& topology,
                           const memory::HostWeights& host, KernelPolicy& policy);
// The same of the variant's placement.memory, on this host.
Judgement KernelPolicyOf(const settings::Variant& variant, KernelPolicy& policy);

// Adds what cannot act in a variant of target kernel without pipes: an `allocator` that is aged.
void AddInertOfKernel(const settings::Variant& variant, v1::WorkerResult& result);

// What the nodes of a `bind` policy can still give, as one limit for all of them: beyond it the
// kernel kills instead of going elsewhere. None for other policies, and where /sys does not say.
// `root` stands before the paths, for tests.
std::vector<MemoryLimit> NodeMemoryLimits(const KernelPolicy& policy, const std::string& root = "");

// void/placement_not_obtained where a page lies outside of the nodes of a `bind` or interleaving
// policy, or where more of interleaving lie on one node than rounding explains: 1 % of all, and a
// round in units of `unit_pages` (1, or a huge page's).
Judgement JudgeKernelPlacement(const KernelPolicy& policy,
                               const std::map<numa::NodeId, int64_t>& pages, int64_t unit_pages);

// What mapping so many bytes takes in page tables of the last level.
inline int64_t PageTableBytes(int64_t bytes) { return bytes / 512; }

enum class HugePages { kNever, kAsHost };

class KernelMapping {
 public:
  // Anonymous private memory of `size_bytes` (> 0) that nobody has touched.
  // failed/no_memory; not_applicable/policy_refused where the kernel does not take the policy.
  static Judgement Map(size_t size_bytes, const KernelPolicy& policy, HugePages huge_pages,
                       std::unique_ptr<KernelMapping>& mapping);

  KernelMapping(const KernelMapping&) = delete;
  KernelMapping& operator=(const KernelMapping&) = delete;
  ~KernelMapping();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

  // Maps the part anew: its pages and their page tables are gone, as if nobody had ever touched it.
  // Precondition: whole pages. Returns 0 or an errno.
  int MapAnew(size_t offset, size_t size_bytes);

 private:
  KernelMapping(std::byte* data, size_t size_bytes, const KernelPolicy& policy,
                HugePages huge_pages)
      : data_(data), size_bytes_(size_bytes), policy_(policy), huge_pages_(huge_pages) {}

  // 0 or an errno.
  int Advise(std::byte* begin, size_t size_bytes) const;
  int Bind(std::byte* begin, size_t size_bytes) const;

  std::byte* const data_;
  const size_t size_bytes_;
  const KernelPolicy policy_;
  const HugePages huge_pages_;
};

}  // namespace pipeyard::load
