// Whether the nodes that a policy or the parameter `allocator` names are there, as far as the file
// itself can tell: nodes of an emulated topology. Those of hosts are known to hosts.
//
// Thread safety: pure function.
#pragma once

#include "controller/spec/draft.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

// Reports, for each such setting and each emulated topology that meet in a variant, the nodes that
// it names and the topology lacks or has without memory. The place is the setting's.
void CheckPolicyNodes(const Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
