// The YAML tree (proto/yaml) under the names that the sweep reader uses.
#pragma once

#include "proto/yaml/node.h"

namespace pipeyard::spec {

using yaml::Describe;
using yaml::Entry;
using yaml::LoadYaml;
using yaml::Node;
using yaml::Place;
using yaml::ToJson;

}  // namespace pipeyard::spec
