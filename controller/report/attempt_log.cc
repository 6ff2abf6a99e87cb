#include "controller/report/attempt_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/printable.h"
#include "base/units.h"
#include "controller/report/json_parts.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

std::string EndOf(const v1::Attempt& attempt) {
  if (attempt.outcome().empty()) return "running";
  std::string text = Printable(attempt.outcome());
  if (!attempt.reason().empty()) text += " (" + Printable(attempt.reason()) + ")";
  return text + " after " + FormatQuantity(static_cast<double>(attempt.elapsed_ns()), "ns");
}

std::string LinesOf(std::string_view data) {
  std::string text;
  while (!data.empty()) {
    const size_t end = data.find_first_of("\n\t");
    text += EscapeControls(data.substr(0, end));
    text += end == std::string_view::npos ? '\n' : data[end];
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
  }
  return text;
}

}  // namespace

std::string TrialName(const v1::AttemptLog& log) {
  return fmt::format("{}/{}/{}", Printable(log.host()), Printable(log.variant_id()),
                     log.trial_index());
}

std::string LogText(const v1::AttemptLog& log) {
  std::string text = fmt::format("{} attempt {} ({}): {}\n", TrialName(log), log.attempt().number(),
                                 Printable(log.attempt().attempt_id()), EndOf(log.attempt()));
  for (const v1::ResolvedValue& value : log.resolved()) {
    text += fmt::format("{}: {} became {}\n", Printable(value.name()),
                        Printable(value.as_written()), Printable(value.resolved()));
  }
  if (log.outputs().empty()) text += "It printed nothing.\n";
  for (const v1::Output& output : log.outputs()) {
    text +=
        fmt::format("--- {}{}\n", Printable(output.stream()),
                    output.omitted_bytes() == 0
                        ? ""
                        : fmt::format(", without its first {}",
                                      FormatBytes(static_cast<int64_t>(output.omitted_bytes()))));
    text += LinesOf(output.data());
  }
  return text;
}

std::string LogJson(const v1::AttemptLog& log) {
  Json json = Schema("run-log");
  json["run"] = log.run_id();
  json["trial"] = TrialName(log);
  json["attempt"] = {{"id", log.attempt().attempt_id()},
                     {"number", log.attempt().number()},
                     {"outcome", OrNull(log.attempt().outcome())},
                     {"reason", log.attempt().reason()}};
  json["resolved"] = Json::array();
  for (const v1::ResolvedValue& value : log.resolved()) {
    json["resolved"].push_back({{"name", value.name()},
                                {"as_written", value.as_written()},
                                {"resolved", value.resolved()}});
  }
  json["outputs"] = Json::array();
  for (const v1::Output& output : log.outputs()) {
    json["outputs"].push_back({{"stream", output.stream()},
                               {"omitted_bytes", output.omitted_bytes()},
                               {"text", output.data()}});
  }
  return Dump(json);
}

}  // namespace pipeyard::report
