// The list of problems (proto/yaml) under the name that the sweep reader uses.
#pragma once

#include "controller/spec/node.h"
#include "controller/spec/sweep.h"
#include "proto/yaml/problems.h"

namespace pipeyard::spec {

using yaml::Problems;

}  // namespace pipeyard::spec
