#include <fmt/format.h>

#include <sstream>

#include "base/units.h"
#include "controller/analysis/compare.h"
#include "controller/cli/commands.h"
#include "controller/cli/exit_code.h"
#include "controller/report/diff_text.h"
#include "controller/report/json.h"

namespace pipeyard::cli {

int Stat(const Console& console, const options::Parsed& parsed) {
  const std::string& path_a = parsed.Get("A");
  const std::string& path_b = parsed.Get("B");
  if (path_a == "-" && path_b == "-") {
    console.Say("only one of the two sides can be standard input");
    return kUsage;
  }
  const Result<double> min_change = ParsePercent(parsed.Get("min-change"));
  if (!min_change.ok()) {
    console.Say(fmt::format("--min-change: {}", min_change.status().message()));
    return kUsage;
  }
  const Result<std::string> a = ReadInput(console.env, path_a);
  const Result<std::string> b = ReadInput(console.env, path_b);
  for (const Result<std::string>* text : {&a, &b}) {
    if (!text->ok()) console.Say(text->status().message());
  }
  if (!a.ok() || !b.ok()) return kUsage;
  analysis::CompareOptions compare;
  compare.min_change = *min_change;
  const std::string& better = parsed.Get("better");
  compare.better = better == "higher"  ? analysis::Better::kHigher
                   : better == "lower" ? analysis::Better::kLower
                                       : analysis::Better::kNone;
  const Result<v1::DiffRow> row = analysis::CompareTexts(*a, path_a, *b, path_b, compare);
  if (!row.ok()) {
    // One line a problem, each with its place.
    std::istringstream problems(row.status().message());
    for (std::string line; std::getline(problems, line);) console.SayLine(line);
    return kUsage;
  }
  console.Out(console.format == Format::kJson ? report::StatJson(*row)
                                              : report::StatText(*row, console.is_colored));
  const v1::DiffRow* const rows[] = {&*row};
  return parsed.Flag("exit-code") ? static_cast<int>(analysis::ExitStatus(rows))
                                  : static_cast<int>(kDone);
}

}  // namespace pipeyard::cli
