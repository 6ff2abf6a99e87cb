#include "controller/cli/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/progress.h"
#include "controller/report/diff_text.h"
#include "controller/report/json.h"
#include "controller/report/run_text.h"

namespace pipeyard::cli {
namespace {

// The controller reads the file itself; what it finds beyond our own reading (no host matches) is
// told in the same form.
std::vector<spec::Problem> FromWire(const v1::SubmitSweepResponse& response) {
  std::vector<spec::Problem> problems;
  for (const v1::SpecProblem& problem : response.problems()) {
    problems.push_back(
        {problem.line(), problem.column(), problem.what(), problem.meant(), problem.is_warning()});
  }
  return problems;
}

}  // namespace

void SayProblems(const Console& console, const std::vector<spec::Problem>& problems,
                 const std::string& path) {
  for (const spec::Problem& problem : problems) console.SayLine(problem.Format(path));
}

std::optional<v1::SubmitSweepResponse> Submit(const Console& console, ControlClient& client,
                                              const Submission& submission, int& exit_status) {
  const Result<std::string> text = submission.text ? Result<std::string>(*submission.text)
                                                   : ReadInput(console.env, submission.path);
  if (!text.ok()) {
    console.Say(text.status().message());
    exit_status = kUsage;
    return std::nullopt;
  }
  const spec::ReadResult read = spec::ReadSweep(*text, submission.sets);
  if (!read.ok()) {
    SayProblems(console, read.problems, submission.path);
    exit_status = kUsage;
    return std::nullopt;
  }
  v1::SubmitSweepRequest request;
  request.set_request_id(IdSource(SystemClock()).Next());
  request.mutable_sweep()->set_file_name(
      std::filesystem::path(submission.path).filename().string());
  request.mutable_sweep()->set_yaml(*text);
  for (const std::string& set : submission.sets) request.mutable_sweep()->add_sets(set);
  for (const auto& [key, value] : submission.labels) (*request.mutable_labels())[key] = value;
  request.set_note(submission.note);
  const Result<v1::SubmitSweepResponse> response = client.SubmitSweep(request);
  if (!response.ok()) {
    exit_status = console.Fail(response.status());
    if (exit_status == kInterrupted || exit_status == kController) {
      console.Say("the sweep may have been submitted nevertheless: `pipeyard run list` tells");
    }
    return std::nullopt;
  }
  SayProblems(console, FromWire(*response), submission.path);
  if (response->run_id().empty()) {
    exit_status = kUsage;
    return std::nullopt;
  }
  return *response;
}

int WatchToTheEnd(const Console& console, ControlClient& client, const std::string& run_id) {
  v1::RunProgress last;
  Status watched;
  {
    ProgressDisplay display(
        stderr, console.is_interactive, [] { return TerminalColumns(STDERR_FILENO); },
        SystemClock());
    watched = client.WatchRun(run_id, [&](const v1::RunProgress& progress) {
      display.Show(progress);
      last = progress;
    });
  }
  if (watched.code() == StatusCode::kCancelled) {
    console.Say(
        fmt::format("interrupted; the run goes on: `pipeyard run watch {}` to watch it, `pipeyard "
                    "run cancel {}` to end it",
                    run_id, run_id));
    return kInterrupted;
  }
  if (!watched.ok()) {
    console.Say(watched.message());
    console.Say(fmt::format("the run may go on: `pipeyard run watch {}`", run_id));
    return ExitCodeFor(watched);
  }
  const int exit_status = static_cast<int>(last.exit_status());
  std::optional<v1::DiffResponse> diff;
  Status compared;
  const Result<v1::Run> run = client.GetRun(run_id);
  if (!run.ok()) return console.Fail(run.status());
  if (!run->compare_factor().empty()) {
    Result<v1::DiffResponse> response = client.Diff(run_id, "");
    if (response.ok()) {
      diff = std::move(response).value();
    } else {
      compared = response.status();
    }
  }
  if (console.format == Format::kJson) {
    console.Out(report::WatchJson(last, diff ? &*diff : nullptr));
  } else if (diff) {
    console.Out(report::DiffText(*diff, console.is_colored));
  } else {
    console.Out(report::RunText(*run, console.is_colored));
  }
  if (!compared.ok()) console.Say(fmt::format("there is no comparison: {}", compared.message()));
  if (exit_status == kMissing)
    console.Say(fmt::format("run {} is {} and lacks trials: `pipeyard run show {}` names them",
                            run_id, last.summary().state(), run_id));
  return exit_status;
}

}  // namespace pipeyard::cli
