// `run log` and `run reproduce`: what is asked of one attempt.
#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/connect.h"
#include "controller/cli/exit_code.h"
#include "controller/report/attempt_log.h"
#include "controller/report/reproduce.h"
#include "proto/options/options.h"

namespace pipeyard::cli {
namespace {

Result<v1::AttemptLog> Ask(ControlClient& client, const options::Parsed& parsed) {
  v1::GetLogRequest request;
  request.set_run(parsed.Get("RUN"));
  request.set_trial(parsed.Get("TRIAL"));
  if (parsed.Has("ATTEMPT")) request.set_attempt(parsed.Get("ATTEMPT"));
  return client.GetLog(request);
}

}  // namespace

int RunLog(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::AttemptLog> log = Ask(client, parsed);
    if (!log.ok()) return console.Fail(log.status());
    console.Out(console.format == Format::kJson ? report::LogJson(*log) : report::LogText(*log));
    return static_cast<int>(kDone);
  });
}

int RunReproduce(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::AttemptLog> log = Ask(client, parsed);
    if (!log.ok()) return console.Fail(log.status());
    const Result<std::string> script = report::ReproduceScript(*log, options::Version());
    if (!script.ok()) return console.Fail(script.status());
    console.Out(*script);
    return static_cast<int>(kDone);
  });
}

}  // namespace pipeyard::cli
