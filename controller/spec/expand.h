// From a Draft to variants: zip, product, exclude, merge, in this order.
//
// Thread safety: pure function.
#pragma once

#include "controller/spec/draft.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

inline constexpr size_t kMaxVariants = 10'000;

// Checks what only the whole draft tells (targets, zip, compare, exclude, support), and fills in
// draft.sweep.variants where there is no error, neither before nor here.
void ExpandDraft(Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
