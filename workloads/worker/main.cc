// pipeyard-worker: runs exactly one attempt. It links no gRPC and no SQLite.
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "base/printable.h"
#include "proto/options/options.h"
#include "workloads/worker/launch.h"
#include "workloads/worker/result_text.h"
#include "workloads/worker/run.h"

namespace pipeyard::worker {
namespace {

constexpr int kDone = 0;
// An attempt run by hand that was not ok, or a result that could not be written.
constexpr int kFailed = 1;
// The command line or the request is wrong; nothing ran.
constexpr int kWrong = 2;

options::Program Description() {
  return {.name = "pipeyard-worker",
          .help = "Runs exactly one attempt of a pipeyard trial",
          .footer =
              "Exit status: 0 the attempt ran (its outcome is in the result), 1 it ran by hand and "
              "was not ok or its result could not be written, 2 the command line or the request "
              "is wrong.",
          .options = {},
          .commands = {
              {.path = "run",
               .help = "run one attempt: of a request file, or described by hand",
               .options = {{.name = "request", .value_name = "FILE", .help = "a WorkerRequest"},
                           {.name = "result",
                            .value_name = "FILE",
                            .help = "where the WorkerResult goes, whole or not at all"},
                           {.name = "workload",
                            .value_name = "NAME",
                            .help = "by hand: its name, as in a sweep"},
                           {.name = "target",
                            .value_name = "NAME",
                            .help = "by hand: kernel or engine",
                            .default_value = "kernel"},
                           {.name = "set",
                            .value_name = "NAME=VALUE",
                            .help = "by hand: a setting, as in a sweep",
                            .repeats = true}}},
              {.path = "launch",
               .help = "set limits, then execute `pipeyard-worker` with what stands behind --",
               .options = {{.name = "affinity", .value_name = "CPUS", .help = "such as 0-3,8"},
                           {.name = "nice", .value_name = "N", .help = "-20 to 19"},
                           {.name = "program",
                            .help = "execute what stands behind -- itself, a program by its path"},
                           {.name = "request",
                            .value_name = "FILE",
                            .help = "take on the placement that this WorkerRequest commands"},
                           {.name = "parent",
                            .value_name = "PID",
                            .help = "end at once where this is not the parent"}},
               .takes_rest = true}}};
}

int Complain(const Status& status) {
  std::fprintf(stderr, "pipeyard-worker: %s\n", EscapeControls(status.message()).c_str());
  return kWrong;
}

Result<v1::WorkerRequest> RequestOf(const options::Parsed& parsed) {
  if (parsed.Has("request") == parsed.Has("workload")) {
    return InvalidArgument("run: either --request FILE or --workload NAME was meant");
  }
  if (!parsed.Has("request")) {
    return MakeRequest({parsed.Get("workload"), parsed.Get("target"), parsed.GetAll("set")});
  }
  if (!parsed.Has("result")) {
    return InvalidArgument("run: --request FILE needs --result FILE");
  }
  return ReadRequest(parsed.Get("request"));
}

int Run(const options::Parsed& parsed, MonotonicTime started) {
  const Result<v1::WorkerRequest> request = RequestOf(parsed);
  if (!request.ok()) return Complain(request.status());
  // By hand there is no `launch` before.
  if (!parsed.Has("request")) TakePlacementOf(*request);
  const Result<v1::WorkerResult> result = RunRequest(*request, started);
  if (!result.ok()) {
    return Complain(parsed.Has("request") ? result.status().WithContext(parsed.Get("request"))
                                          : result.status());
  }
  std::fputs(ResultText(*result).c_str(), stdout);
  if (!parsed.Has("result")) return result->outcome() == v1::OUTCOME_OK ? kDone : kFailed;
  if (const Status written = WriteResult(parsed.Get("result"), *result); !written.ok()) {
    static_cast<void>(Complain(written));
    return kFailed;
  }
  return kDone;
}

int LaunchMain(const options::Parsed& parsed) {
  Result<LaunchOptions> options =
      ParseLaunchOptions(parsed.Get("affinity"), parsed.Get("nice"), parsed.Get("parent"),
                         parsed.Get("request"), parsed.rest());
  if (!options.ok()) return Complain(options.status());
  options->executes_program = parsed.Flag("program");
  return Complain(Launch(*options).WithContext("launch"));
}

int Main(int argc, const char* const* argv) {
  const MonotonicTime started = SystemClock().Now();
  const options::ParseResult result =
      options::Parse(Description(), argc, argv, options::ProcessEnvironment());
  if (result.exit_status) return options::Finish(result);
  if (result.parsed.command() == "launch") return LaunchMain(result.parsed);
  return Run(result.parsed, started);
}

}  // namespace
}  // namespace pipeyard::worker

int main(int argc, char** argv) { return pipeyard::worker::Main(argc, argv); }
