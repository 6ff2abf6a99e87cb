// Checks of a whole draft, where several parts of the file must agree.
//
// Thread safety: pure functions.
#pragma once

#include "controller/spec/draft.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

// Targets against the workload, engine.* against targets, zip and compare against factors, and what
// is not supported yet. Sets draft.sweep.compare_*, and draft.is_expandable to false where a zip
// cannot be used.
void CheckDraft(Draft& draft, Problems& problems);

// Expanded variants: policies over nodes that their topologies lack, time limits that no trial can
// keep, comparisons that lack a side.
void CheckVariants(const Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
