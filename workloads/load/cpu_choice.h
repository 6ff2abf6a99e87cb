// ChooseCpus: what `placement.cpus` becomes on a topology.
//
// Thread safety: pure but for what `read` reads.
#pragma once

#include <vector>

#include "base/status.h"
#include "proto/settings/cpu_text.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {

struct CpuChoice {
  // In the order in which workers take them in turn; of the topology. Empty: as inherited.
  std::vector<numa::CpuId> cpus;
  // Each worker stays on its own, instead of all of them on all of these.
  bool is_per_worker = false;
};

// Of the host only host_cpus() are chosen. `read` is asked for the hardware threads of a core where
// the topology is the host's; a host that does not say has one a core, and so has an emulated
// topology. Errors: kNotFound names the CPU, the node or the role that the topology lacks and what
// it has.
Result<CpuChoice> ChooseCpus(const settings::CpuText& text, const numa::Topology& topology,
                             const numa::ReadFile& read);

// The nodes of `topology` that have `role` (proto/settings/node_role.h). Errors: kNotFound where
// it has none.
Result<numa::NodeMask> NodesOfRole(std::string_view role, const numa::Topology& topology);

}  // namespace pipeyard::load
