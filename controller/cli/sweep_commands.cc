#include <fmt/format.h>

#include <filesystem>

#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/connect.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/submit.h"
#include "controller/report/json.h"
#include "controller/report/sweep_text.h"
#include "controller/spec/labels.h"
#include "controller/spec/sweep.h"

namespace pipeyard::cli {

namespace {

int Validate(const Console& console, const options::Parsed& parsed, const std::string& text) {
  const spec::ReadResult read = spec::ReadSweep(text, parsed.GetAll("set"));
  SayProblems(console, read.problems, parsed.Get("FILE"));
  if (console.format == Format::kJson) {
    console.Out(report::ValidateJson(read));
  } else if (read.ok()) {
    console.Out(report::SweepText(read.sweep, console.is_colored));
  }
  return read.ok() ? kDone : kUsage;
}

}  // namespace

int SweepValidate(const Console& console, const options::Parsed& parsed) {
  const Result<std::string> text = ReadInput(console.env, parsed.Get("FILE"));
  if (!text.ok()) {
    console.Say(text.status().message());
    return kUsage;
  }
  return Validate(console, parsed, *text);
}

int SweepPlan(const Console& console, const options::Parsed& parsed) {
  const std::string& path = parsed.Get("FILE");
  const Result<std::string> text = ReadInput(console.env, path);
  if (!text.ok()) {
    console.Say(text.status().message());
    return kUsage;
  }
  const spec::ReadResult read = spec::ReadSweep(*text, parsed.GetAll("set"));
  SayProblems(console, read.problems, path);
  if (!read.ok()) return kUsage;
  return WithController(console, [&](ControlClient& client) {
    v1::PlanSweepRequest request;
    request.mutable_sweep()->set_file_name(std::filesystem::path(path).filename().string());
    request.mutable_sweep()->set_yaml(*text);
    for (const std::string& set : parsed.GetAll("set")) request.mutable_sweep()->add_sets(set);
    const Result<v1::Plan> plan = client.PlanSweep(request);
    if (!plan.ok()) return console.Fail(plan.status());
    console.Out(console.format == Format::kJson ? report::PlanJson(*plan)
                                                : report::PlanText(*plan, console.is_colored));
    return static_cast<int>(kDone);
  });
}

int SweepSubmit(const Console& console, const options::Parsed& parsed) {
  Submission submission{.path = parsed.Get("FILE"),
                        .sets = parsed.GetAll("set"),
                        .labels = {},
                        .note = parsed.Get("note")};
  const Result<spec::Labels> labels = spec::ParseLabels(parsed.GetAll("label"));
  if (!labels.ok()) return console.Fail(labels.status().WithContext("--label"));
  submission.labels = *labels;
  const Status noted = spec::CheckNote(submission.note);
  if (!noted.ok()) return console.Fail(noted.WithContext("--note"));
  const Result<std::string> text = ReadInput(console.env, submission.path);
  if (!text.ok()) {
    console.Say(text.status().message());
    return kUsage;
  }
  // A file with problems needs no controller to be told so.
  if (!spec::ReadSweep(*text, submission.sets).ok()) return Validate(console, parsed, *text);
  submission.text = *text;
  return WithController(console, [&](ControlClient& client) {
    int exit_status = kDone;
    const std::optional<v1::SubmitSweepResponse> submitted =
        Submit(console, client, submission, exit_status);
    if (!submitted) return exit_status;
    const std::string& run_id = submitted->run_id();
    if (!parsed.Flag("watch")) {
      console.Out(console.format == Format::kJson ? report::SubmitJson(*submitted) : run_id + "\n");
      return static_cast<int>(kDone);
    }
    console.Say(fmt::format("run {}", run_id));
    return WatchToTheEnd(console, client, run_id);
  });
}

}  // namespace pipeyard::cli
