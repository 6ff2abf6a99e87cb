// The commands of `pipeyard` with their arguments and options, as data.
//
// Thread safety: pure.
#pragma once

#include "proto/options/options.h"

namespace pipeyard::cli {

options::Program MakeProgram();

}  // namespace pipeyard::cli
