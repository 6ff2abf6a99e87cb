// What the settings of two compared cells say about their comparison: that no difference between
// them can act, or that their times are modelled.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "controller/analysis/samples.h"

namespace pipeyard::analysis {

// Names of the settings in which the cells differ, where none of them can act: on each side the
// setting is at its default, or every sample's worker recorded it as inert, and on one side at
// least it was recorded. Empty otherwise: the cells do not differ, or some difference acts.
std::vector<std::string> InertDifference(const CellSamples& a, const CellSamples& b);

// "remote_access=120ns" where the cell's times are modelled (emulated topology); else empty.
std::string ModelledWords(const CellSamples& cell);
// Of both sides: said once where they agree, else "A remote_access=120ns, B real". A side without
// samples says nothing. Empty where both are real.
std::string ModelledWords(const CellSamples* a, const CellSamples* b);

}  // namespace pipeyard::analysis
