#include "base/signals.h"
#include "controller/cli/commands.h"
#include "controller/cli/console.h"
#include "controller/cli/program.h"
#include "proto/options/options.h"

int main(int argc, char** argv) {
  using namespace pipeyard;
  const options::Environment environment = options::ProcessEnvironment();
  const options::ParseResult result = options::Parse(cli::MakeProgram(), argc, argv, environment);
  if (result.exit_status) return options::Finish(result);
  // Before gRPC starts its threads.
  SignalWatcher signals;
  return cli::RunCommand(cli::MakeConsole(result.parsed, environment, signals), result.parsed);
}
