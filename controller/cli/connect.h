// Runs a command's body with a connected client.
//
// Thread safety: confined to main's thread.
#pragma once

#include <functional>

#include "controller/cli/client.h"
#include "controller/cli/console.h"

namespace pipeyard::cli {

// Connects to the console's controller and calls `body`; says why and returns the exit status where
// there is none. SIGINT and SIGTERM cancel what it waits for.
int WithController(const Console& console, const std::function<int(ControlClient&)>& body);

}  // namespace pipeyard::cli
