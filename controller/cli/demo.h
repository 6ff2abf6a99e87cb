// `pipeyard demo`: a controller and agents on loopback with free ports, the ready sweeps, and their
// tables.
//
// Thread safety: confined to main's thread. The processes it starts end with it; what they stored
// is kept and named.
#pragma once

#include "controller/cli/console.h"

namespace pipeyard::cli {

struct DemoOptions {
  bool quick = false;     // prealloc only
  int hosts = 2;          // 1..16
  std::string state_dir;  // "": a new folder below the default state folder
};

int RunDemo(const Console& console, const DemoOptions& options);

}  // namespace pipeyard::cli
