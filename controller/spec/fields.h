// The reader of one map (proto/yaml) under the names that the sweep reader uses.
#pragma once

#include "controller/spec/node.h"
#include "controller/spec/problems.h"
#include "proto/yaml/fields.h"

namespace pipeyard::spec {

using yaml::CheckDuplicateKeys;
using yaml::Fields;
using yaml::ScalarText;

}  // namespace pipeyard::spec
