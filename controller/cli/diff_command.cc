#include <fmt/format.h>

#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/connect.h"
#include "controller/cli/exit_code.h"
#include "controller/report/diff_text.h"
#include "controller/report/json.h"

namespace pipeyard::cli {

int Diff(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::DiffResponse> diff =
        client.Diff(parsed.Get("A"), parsed.Get("B"), parsed.Flag("force"));
    if (!diff.ok()) return console.Fail(diff.status());
    console.Out(console.format == Format::kJson ? report::DiffJson(*diff)
                                                : report::DiffText(*diff, console.is_colored));
    return parsed.Flag("exit-code") ? static_cast<int>(diff->exit_status())
                                    : static_cast<int>(kDone);
  });
}

}  // namespace pipeyard::cli
