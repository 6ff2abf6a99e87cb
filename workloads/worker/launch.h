// `pipeyard-worker launch`: what has to hold for the process that runs an attempt and cannot be
// asked of posix_spawn, then the program executes itself.
//
// Thread safety: called once, from main, while the process has one thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace pipeyard::worker {

struct LaunchOptions {
  std::vector<int> cpus;               // empty: as inherited
  int nice = 0;                        // -20 .. 19, the value itself; 0: as inherited
  std::string request_path;            // whose variant's placement is taken on; empty: none
  int parent_pid = 0;                  // 0: whoever it is at the start
  std::vector<std::string> arguments;  // of the program executed, without argv[0]
  // `arguments` begins with the path of another program, which is executed in place of this one.
  bool executes_program = false;
};

// Errors: kInvalidArgument names the option.
Result<LaunchOptions> ParseLaunchOptions(const std::string& affinity, const std::string& nice,
                                         const std::string& parent, std::string request_path,
                                         std::vector<std::string> arguments);

// No core files, killed when the thread that spawned this process ends, affinity, niceness, the
// placement of the request; then the program anew with `arguments`. A placement that this host
// does not have is left out: the worker finds that out as well, and it has a result to say it in.
// Returns only on failure: what could not be had, or kAborted where the parent has gone already.
Status Launch(const LaunchOptions& options);

}  // namespace pipeyard::worker
