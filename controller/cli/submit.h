// Submitting a sweep and following its run to the end, as `sweep submit`, `run watch` and `demo`
// do.
//
// Thread safety: confined to main's thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/cli/client.h"
#include "controller/cli/console.h"
#include "controller/spec/sweep.h"

namespace pipeyard::cli {

struct Submission {
  std::string path;  // of the sweep file
  std::vector<std::string> sets;
  std::map<std::string, std::string> labels;
  std::string note;
  // What the file holds, where it has been read already: a pipe can be read only once.
  std::optional<std::string> text = std::nullopt;
};

// One line a problem on stderr, as FILE:LINE:COL: ...
void SayProblems(const Console& console, const std::vector<spec::Problem>& problems,
                 const std::string& path);

// Checks the file here first, so that problems need no controller; then submits. Says
// every problem as FILE:LINE:COL: ... on stderr. Returns the answer with the run's id, or the exit
// status in `exit_status` and nullopt.
std::optional<v1::SubmitSweepResponse> Submit(const Console& console, ControlClient& client,
                                              const Submission& submission, int& exit_status);

// Shows progress until the run is terminal, then prints its comparison (where the sweep has one) or
// its summary. Returns the exit status: 0 finished, 6 cells lack trials or failed or canceled, 130
// interrupted (the run goes on).
int WatchToTheEnd(const Console& console, ControlClient& client, const std::string& run_id);

}  // namespace pipeyard::cli
