#include "controller/cli/connect.h"

#include "controller/cli/exit_code.h"

namespace pipeyard::cli {
namespace {

constexpr Nanos kConnectTimeout = Seconds(5);

}  // namespace

int WithController(const Console& console, const std::function<int(ControlClient&)>& body) {
  const Result<std::unique_ptr<ControlClient>> client =
      ControlClient::Connect(console.controller_address, kConnectTimeout);
  if (!client.ok()) return console.Fail(client.status());
  console.signals.OnSignal([&](int) { (*client)->Cancel(); });
  const int exit_status = body(**client);
  console.signals.StopCalling();
  return exit_status;
}

}  // namespace pipeyard::cli
