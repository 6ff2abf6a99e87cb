// Sections of a sweep that say how it is run, not what: hosts, expect, repetitions, order, limits,
// metrics, labels, and those that parse but are not executed yet.
//
// Thread safety: pure functions.
#pragma once

#include "controller/spec/draft.h"
#include "controller/spec/fields.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

// Takes its keys from `top` and fills the parts of `draft.sweep` that follow from them.
// draft.workload is already known.
void ReadRunSections(Fields& top, Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
