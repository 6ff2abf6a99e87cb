// The words of a memory policy, so that a mistyped one is refused with its sweep and not by every
// attempt. What a policy means is known to workloads/memory alone (memory::ParsePolicy); a test of
// workloads/load holds the two against each other.
//
// Thread safety: pure functions.
#pragma once

#include <set>
#include <string_view>

#include "base/status.h"

namespace pipeyard::settings {

// The nodes that a policy names by number; none for "", "default", "local" and node roles
// (node_role.h). Errors: as CheckPolicyText().
Result<std::set<int>> ReadPolicyNodes(std::string_view text);

// "", "default", "local", "preferred:1", "preferred-many:0,1", "bind:0-1", "interleave:0,1",
// "weighted-interleave:0=3,1=1", "weighted-interleave:0,1"; where nodes stand alone, a node role
// may stand. Errors: kInvalidArgument.
Status CheckPolicyText(std::string_view text);

}  // namespace pipeyard::settings
