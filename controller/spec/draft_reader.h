// Reads a whole sweep file into a Draft.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/draft.h"
#include "controller/spec/node.h"
#include "controller/spec/problems.h"

namespace pipeyard::spec {

// Reports what is wrong with each part; what could be read is in the draft.
Draft ReadDraft(const Node& root, const std::vector<std::string>& sets, Problems& problems);

// A factor with the levels that could be read; draft.is_expandable becomes false where not all
// could.
Factor ReadFactor(std::string_view name, Place place, const Node& levels, Draft& draft,
                  Problems& problems);

// `NAME=VALUE`, in order: VALUE replaces the setting or the whole factor; `[a, b]` makes a factor.
void ApplySets(const std::vector<std::string>& sets, Draft& draft, Problems& problems);

}  // namespace pipeyard::spec
