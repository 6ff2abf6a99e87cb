#include "controller/report/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/shell.h"
#include "base/units.h"
#include "controller/report/attempt_log.h"
#include "controller/report/words.h"
#include "proto/settings/definition.h"
#include "proto/settings/variant.h"

namespace pipeyard::report {
namespace {

constexpr std::string_view kHead = R"(#!/usr/bin/env bash
# Repeats one trial by hand. Written by `pipeyard run reproduce`.
)";
constexpr std::string_view kChecks = R"(set -euo pipefail

need() {
  command -v "$1" >/dev/null || { echo "$1 is not in PATH: $2" >&2; exit 1; }
}
)";

// What the attempt was; comments, so that nothing of it may hold a line's end.
std::string Story(const v1::AttemptLog& log) {
  const v1::Attempt& attempt = log.attempt();
  std::string text =
      fmt::format("#\n# trial    {}\n# run      {} (sweep {})\n# attempt  {}: {}{}\n",
                  TrialName(log), Printable(log.run_id()), Printable(log.sweep()), attempt.number(),
                  attempt.outcome().empty() ? "running" : Printable(attempt.outcome()),
                  attempt.reason().empty() ? "" : ", " + Printable(attempt.reason()));
  for (const v1::Metric& metric : attempt.metrics()) {
    if (!metric.has_value()) continue;
    text += fmt::format("#          {} {}\n", Printable(metric.name()),
                        FormatQuantity(metric.value(), metric.unit()));
  }
  for (const v1::ResolvedValue& value : log.resolved()) {
    text += fmt::format("# there    {}: {} became {}\n", Printable(value.name()),
                        Printable(value.as_written()), Printable(value.resolved()));
  }
  return text + "# Run it on that host: elsewhere the same settings are another trial.\n";
}

std::string WorkerLine(const settings::Variant& variant) {
  std::string line = fmt::format("pipeyard-worker run --workload {} --target {}",
                                 ShellQuoted(variant.workload), ShellQuoted(variant.target));
  for (const auto& [name, value] : variant.values) {
    const settings::Definition* const definition = settings::FindDefinition(variant.workload, name);
    if (definition == nullptr || value == definition->default_value) continue;
    const std::string text = settings::DisplayValue(variant.workload, name, value);
    line += " \\\n  --set " + ShellQuoted(name + "=" + text);
  }
  return line + "\n";
}

const v1::ResolvedValue* Find(const v1::AttemptLog& log, std::string_view name) {
  for (const v1::ResolvedValue& value : log.resolved()) {
    if (value.name() == name) return &value;
  }
  return nullptr;
}

std::optional<std::string> Resolved(const v1::AttemptLog& log, const settings::Variant& variant,
                                    const std::string& name) {
  if (const v1::ResolvedValue* const value = Find(log, name)) return value->resolved();
  const std::string& written = variant.Text(name);
  return written.empty() ? std::nullopt : std::optional(written);
}

// The words before a public tool that put it where the trial was. nullopt where numactl has none.
std::optional<std::string> PlacementWords(const v1::AttemptLog& log,
                                          const settings::Variant& variant) {
  std::string words;
  if (const auto cpus = Resolved(log, variant, "placement.cpus")) {
    words += "taskset -c " + ShellQuoted(*cpus) + " ";
  }
  const auto memory = Resolved(log, variant, "placement.memory");
  if (!memory) return words;
  const size_t colon = memory->find(':');
  const std::string mode = memory->substr(0, colon);
  const std::string nodes = colon == std::string::npos ? "" : memory->substr(colon + 1);
  if (mode == "bind") return words + "numactl --membind=" + ShellQuoted(nodes) + " ";
  if (mode == "interleave") return words + "numactl --interleave=" + ShellQuoted(nodes) + " ";
  if (mode == "preferred") return words + "numactl --preferred=" + ShellQuoted(nodes) + " ";
  if (mode == "local") return words + "numactl --localalloc ";
  if (mode == "default") return words;
  return std::nullopt;
}

// Rounds of each sender: as commanded, or as many as there were within the commanded time.
int64_t Loops(const v1::AttemptLog& log, const settings::Variant& variant) {
  if (variant.Integer("duration") == 0) return variant.Integer("loops");
  const int64_t fds = variant.Integer("fds");
  const int64_t messages_a_loop = variant.Integer("groups") * fds * fds;
  for (const v1::Counter& counter : log.attempt().counters()) {
    if (counter.name() == "messages")
      return std::max<int64_t>(1, counter.value() / messages_a_loop);
  }
  return variant.Integer("loops");
}

// The same by hackbench; empty where it is not the same.
std::string HackbenchPart(const v1::AttemptLog& log, const settings::Variant& variant) {
  if (variant.workload != "messaging" || variant.target != "kernel") return "";
  const std::string& cpus = variant.Text("placement.cpus");
  if (variant.Text("allocator") != "fresh" || cpus == "spread" || cpus == "one-per-core") {
    return "\n# hackbench has the same pattern, but ages no allocator and pins no worker.\n";
  }
  const std::optional<std::string> placement = PlacementWords(log, variant);
  if (!placement) {
    return "\n# hackbench has the same pattern, and numactl no word for this memory policy.\n";
  }
  std::string text =
      "\n# By a public tool: hackbench has the same pattern. It sets no size of its pipes.\n";
  text += "need hackbench 'install the package rt-tests'\n";
  if (placement->find("taskset") != std::string::npos) {
    text += "need taskset 'install the package util-linux'\n";
  }
  if (placement->find("numactl") != std::string::npos) {
    text += "need numactl 'install the package numactl'\n";
  }
  return text + fmt::format("{}hackbench -p {} -g {} -f {} -s {} -l {}\n", *placement,
                            variant.Text("workers") == "threads" ? "-T" : "-P",
                            variant.Integer("groups"), variant.Integer("fds"),
                            variant.Integer("message_bytes"), Loops(log, variant));
}

// The program itself, as the host's agent resolved it.
Result<std::string> CommandPart(const v1::AttemptLog& log, const settings::Variant& variant) {
  const v1::ResolvedValue* const program = Find(log, "program_sha256");
  const v1::ResolvedValue* const line = Find(log, "command_line");
  if (program == nullptr || line == nullptr) {
    return FailedPrecondition(fmt::format(
        "{}: attempt {} did not come to start its program, so that there is nothing to repeat",
        TrialName(log), log.attempt().number()));
  }
  const std::optional<std::string> placement = PlacementWords(log, variant);
  if (!placement) return FailedPrecondition("numactl has no word for the trial's memory policy");
  const std::string path = ShellQuoted(program->as_written());
  std::string text =
      fmt::format(R"(
# The program that ran there, and whether it is still the same.
need {0} 'it is not where it was'
echo {1} | sha256sum --check --quiet - || echo 'the program is another one now' >&2
)",
                  path, ShellQuoted(program->resolved() + "  " + program->as_written()));
  if (placement->find("taskset") != std::string::npos) {
    text += "need taskset 'install the package util-linux'\n";
  }
  if (placement->find("numactl") != std::string::npos) {
    text += "need numactl 'install the package numactl'\n";
  }
  // It was quoted where it ran.
  return text + *placement + line->resolved() + "\n";
}

}  // namespace

Result<std::string> ReproduceScript(const v1::AttemptLog& log, const std::string& version) {
  Result<settings::Variant> variant = settings::FromProto(log.settings());
  if (!variant.ok()) return variant.status().WithContext(TrialName(log));
  std::string script(kHead);
  script += Story(log);
  script += kChecks;
  if (variant->workload == "command") {
    PIPEYARD_ASSIGN_OR_RETURN(const std::string part, CommandPart(log, *variant));
    return script + part;
  }
  script += HackbenchPart(log, *variant);
  script += fmt::format(R"(
# By Pipeyard's own worker, with the settings of the trial.
need pipeyard-worker 'add the folder of Pipeyard'"'"'s programs to PATH'
version=$(pipeyard-worker --version)
[[ $version == *{0}* ]] || echo "this is $version; the trial's settings are those of {0}" >&2
)",
                        version);
  return script + WorkerLine(*variant);
}

}  // namespace pipeyard::report
