#include "controller/cli/commands.h"

#include <fmt/format.h>

#include <string_view>

#include "controller/cli/exit_code.h"

namespace pipeyard::cli {
namespace {

struct Entry {
  std::string_view path;
  int (*run)(const Console&, const options::Parsed&);
};

constexpr Entry kEntries[] = {
    {"demo", Demo},
    {"sweep validate", SweepValidate},
    {"sweep plan", SweepPlan},
    {"sweep submit", SweepSubmit},
    {"run list", RunList},
    {"run show", RunShow},
    {"run watch", RunWatch},
    {"run log", RunLog},
    {"run reproduce", RunReproduce},
    {"run cancel", RunCancel},
    {"host list", HostList},
    {"host show", HostShow},
    {"diff", Diff},
    {"stat", Stat},
    {"command list", CommandList},
    {"command show", CommandShow},
    {"command test", CommandTest},
    {"explain bulk", ExplainBulk},
    {"explain metadata", ExplainMetadata},
};

}  // namespace

int RunCommand(const Console& console, const options::Parsed& parsed) {
  for (const Entry& entry : kEntries) {
    if (entry.path == parsed.command()) return entry.run(console, parsed);
  }
  console.Say(fmt::format("'{}' has no implementation", parsed.command()));
  return kUsage;
}

}  // namespace pipeyard::cli
