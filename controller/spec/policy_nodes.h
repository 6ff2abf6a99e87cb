// Whether the nodes that a policy names are there, as far as the file itself can tell: nodes of an
// emulated topology. Those of hosts are known to hosts.
//
// Thread safety: pure function.
#pragma once

#include "controller/spec/draft.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

// Reports, for each policy and each emulated topology that meet in a variant, the nodes that the
// policy names and the topology lacks or has without memory. The place is the policy's.
void CheckPolicyNodes(const Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
