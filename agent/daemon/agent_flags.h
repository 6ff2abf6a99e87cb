// The agent's command line, environment and configuration file, checked.
//
// Thread safety: called once, from main.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "proto/options/options.h"

namespace pipeyard::agent {

struct AgentFlags {
  std::string state_folder;  // absolute
  std::string controller;    // HOST:PORT
  std::string name;
  std::string worker_program;        // absolute; empty: beside the agent's own program
  std::string commands_folder;       // absolute
  bool has_commands_folder = false;  // it was named, not the usual one
  std::string trial_lock_path;
  Nanos trial_lock_timeout{0};
  uint64_t min_free_bytes = 0;
  Nanos welcome_timeout{0};
  Nanos backoff_max{0};
};

options::Program Description(const options::Environment& environment);

// Errors: kInvalidArgument names the option, what it holds and what was meant.
Result<AgentFlags> ReadFlags(const options::Parsed& parsed);

}  // namespace pipeyard::agent
