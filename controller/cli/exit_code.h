// Exit statuses of `pipeyard`, as scripts rely on them (docs/CLI.md, "Exit status").
//
// Thread safety: constants and pure functions.
#pragma once

#include "base/status.h"

namespace pipeyard::cli {

enum ExitCode : int {
  kDone = 0,          // done, gate passed
  kRegression = 1,    // the gate found a regression
  kUsage = 2,         // the command or the file is wrong
  kInconclusive = 3,  // says how many more repetitions or boots it needs
  kController = 4,    // cannot be reached, refused the caller, or speaks another protocol version
  kNoSuchThing = 5,
  kMissing = 6,  // a cell has too few ok trials, or the run failed or was canceled
  kInterrupted = 130,
};

// The status for a failed call to the controller: kUsage for what the user asked wrongly,
// kNoSuchThing for NOT_FOUND, else kController.
int ExitCodeFor(const Status& status);

}  // namespace pipeyard::cli
