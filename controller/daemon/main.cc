// pipeyard-controller.
#include <cstdio>
#include <string>

#include "base/log.h"
#include "base/printable.h"
#include "base/signals.h"
#include "base/units.h"
#include "controller/daemon/controller.h"
#include "proto/options/options.h"

namespace {

using pipeyard::Result;
using pipeyard::Status;
using pipeyard::options::Option;

constexpr const char* kName = "pipeyard-controller";

pipeyard::options::Program Program(const std::string& default_state) {
  pipeyard::options::Program program;
  program.name = kName;
  program.help =
      "Schedules sweeps over the agents that attach, and keeps every result in one store.";
  program.footer =
      "Environment: PIPEYARD_STATE, PIPEYARD_LISTEN, PIPEYARD_HTTP and so on, one for each "
      "option.\n"
      "Exit status: 0 stopped by SIGTERM or SIGINT, 1 could not store all results before it "
      "ended,\n"
      "2 cannot start.";
  program.options = {
      Option{.name = "state",
             .value_name = "DIR",
             .help = "folder of the store",
             .default_value = default_state},
      Option{.name = "listen",
             .value_name = "ADDR",
             .help = "HOST:PORT for agents and the command line; port 0 draws a free one",
             .default_value = "127.0.0.1:7420"},
      Option{.name = "http",
             .value_name = "ADDR",
             .help = "HOST:PORT for /healthz and /metrics",
             .default_value = "127.0.0.1:7421"},
      Option{.name = "insecure",
             .help = "allow addresses that are not loopback; there is no access control yet"},
      Option{.name = "heartbeat",
             .value_name = "DURATION",
             .help = "how often agents say that they live; three missed ones end a session",
             .default_value = "10s"},
      Option{.name = "log-level",
             .value_name = "LEVEL",
             .help = "least important lines to log",
             .default_value = "info",
             .choices = {"debug", "info", "warning", "error"}},
  };
  return program;
}

pipeyard::LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return pipeyard::LogLevel::kDebug;
  if (name == "warning") return pipeyard::LogLevel::kWarning;
  if (name == "error") return pipeyard::LogLevel::kError;
  return pipeyard::LogLevel::kInfo;
}

int CannotStart(const Status& status) {
  std::fprintf(stderr, "%s: %s\n", kName, pipeyard::EscapeControls(status.message()).c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  pipeyard::SignalWatcher signals;
  const auto environment = pipeyard::options::ProcessEnvironment();
  const auto parsed = pipeyard::options::Parse(
      Program(pipeyard::options::DefaultStateDir("controller", environment)), argc, argv,
      environment);
  if (parsed.exit_status) return pipeyard::options::Finish(parsed);
  const pipeyard::options::Parsed& given = parsed.parsed;
  // A start that fails says one line; what went well before it is noise.
  pipeyard::SetLogLevel(pipeyard::LogLevel::kWarning);

  pipeyard::daemon::ControllerConfig config;
  config.state_dir = given.Get("state");
  config.listen = given.Get("listen");
  config.http = given.Get("http");
  config.is_insecure_allowed = given.Flag("insecure");
  const Result<pipeyard::Nanos> heartbeat = pipeyard::ParseDuration(given.Get("heartbeat"));
  if (!heartbeat.ok()) return CannotStart(heartbeat.status().WithContext("--heartbeat"));
  if (*heartbeat < pipeyard::Milliseconds(10) || *heartbeat > pipeyard::Minutes(10)) {
    return CannotStart(pipeyard::InvalidArgument("--heartbeat: from 10ms to 10m"));
  }
  config.heartbeat_interval = *heartbeat;

  auto controller = pipeyard::daemon::Controller::Start(config);
  if (!controller.ok()) return CannotStart(controller.status());
  pipeyard::SetLogLevel(LevelOf(given.Get("log-level")));
  std::printf("%s: gRPC on %s, HTTP on %s, state in %s\n", kName,
              (*controller)->grpc_address().c_str(), (*controller)->http_address().c_str(),
              config.state_dir.c_str());
  std::fflush(stdout);

  while (!signals.Wait(pipeyard::Minutes(60))) {
  }
  const Status stopped = (*controller)->Stop();
  if (!stopped.ok()) {
    std::fprintf(stderr, "%s: %s\n", kName, pipeyard::EscapeControls(stopped.message()).c_str());
    return 1;
  }
  return 0;
}
