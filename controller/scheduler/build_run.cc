#include "controller/scheduler/build_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/scheduler/order.h"
#include "proto/settings/command_parameters.h"

namespace pipeyard::scheduler {
namespace {

// Spawn of the worker, its set-up and the writing of its result, as seen on loopback; for estimates
// only.
constexpr Nanos kStartUp = Milliseconds(150);

const std::string* Find(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

// Why the selector passes over the host; empty where it does not.
std::string WhyLeftOut(const spec::Sweep& sweep, const HostView& host) {
  const spec::HostSelector& selector = sweep.hosts;
  const storage::HostRecord& record = host.record;
  if (!selector.names.empty() &&
      std::ranges::find(selector.names, record.name) == selector.names.end()) {
    return "is not among the names";
  }
  if (!selector.classes.empty()) {
    const std::string* own = Find(record.labels, "class");
    if (own == nullptr || std::ranges::find(selector.classes, *own) == selector.classes.end()) {
      return own == nullptr ? "has no label class" : "is of class " + *own;
    }
  }
  for (const auto& [key, value] : selector.labels) {
    const std::string* own = Find(record.labels, key);
    if (own == nullptr || *own != value) return fmt::format("lacks the label {}={}", key, value);
  }
  for (const auto& [key, value] : selector.not_labels) {
    const std::string* own = Find(record.labels, key);
    if (own != nullptr && *own == value) return fmt::format("has the label {}={}", key, value);
  }
  const int nodes = std::max(1, record.facts.nodes_size());
  if (static_cast<uint32_t>(nodes) < selector.min_nodes) {
    return fmt::format("has {} node{}, the sweep asks for {}", nodes, nodes == 1 ? "" : "s",
                       selector.min_nodes);
  }
  if (!host.is_connected && host.away_for > sweep.host_wait) {
    return fmt::format("is away, for longer than host_wait ({})", FormatDuration(sweep.host_wait));
  }
  return "";
}

// Why no cell of the host can run; empty where it matches.
std::string WhyUnexpected(const spec::Sweep& sweep, const storage::HostRecord& host) {
  for (const auto& [fact, pattern] : sweep.expect) {
    if (fact == "kernel" && !GlobMatches(pattern, host.facts.kernel_release())) {
      return fmt::format("kernel {} does not match {}", host.facts.kernel_release(), pattern);
    }
  }
  return "";
}

// Why the host's command, as its facts tell of it, cannot do what the variant commands; empty where
// it can, and where an agent of another version tells in a way that is not understood here: then it
// judges itself.
std::string WhyNoCommand(const settings::Variant& variant, const storage::HostRecord& host) {
  const std::string& name = variant.Text("command");
  const auto& facts = host.facts.more();
  const auto program = facts.find(settings::ProgramFact(name));
  if (program != facts.end() && program->second.starts_with(settings::kMissingProgram)) {
    return fmt::format("command {}: {}", name,
                       program->second.substr(settings::kMissingProgram.size()));
  }
  const auto signature = facts.find(settings::SignatureFact(name));
  if (signature == facts.end()) {
    return fmt::format("the host has no command {}; a file in its agent's commands.d allows one",
                       name);
  }
  const auto parameters = settings::ParseSignature(signature->second);
  if (!parameters.ok()) return "";
  const Status checked =
      settings::CheckCommandParameters(*parameters, settings::GivenCommandParameters(variant));
  return checked.ok() ? "" : fmt::format("command {}: {}", name, checked.message());
}

std::string WhyNotCapable(const spec::SweepVariant& variant, const storage::HostRecord& host) {
  const std::string wanted = variant.variant.workload + ":" + variant.variant.target;
  if (std::ranges::find(host.capabilities, wanted) == host.capabilities.end()) {
    return fmt::format("the agent cannot run {}", wanted);
  }
  return variant.variant.workload == "command" ? WhyNoCommand(variant.variant, host) : "";
}

void AddHost(const spec::Sweep& sweep, const storage::HostRecord& host, storage::RunRecord& run) {
  const std::string unexpected = WhyUnexpected(sweep, host);
  const size_t first_cell = run.cells.size();
  std::vector<OrderVariant> applicable;
  for (uint32_t index = 0; index < sweep.variants.size(); ++index) {
    const spec::SweepVariant& variant = sweep.variants[index];
    storage::CellRecord cell;
    cell.host_id = host.host_id;
    cell.host_name = host.name;
    cell.variant_index = index;
    cell.reason = unexpected.empty() ? WhyNotCapable(variant, host) : unexpected;
    if (cell.reason.empty()) {
      applicable.push_back({index, !variant.arm.empty(), variant.comparison});
    } else {
      cell.state = storage::CellState::kNotApplicable;
    }
    run.cells.push_back(std::move(cell));
  }

  const std::vector<OrderedTrial> order =
      TrialOrder(sweep.order, applicable, sweep.repetitions_max, run.order_seed, host.host_id);
  uint32_t position = 0;
  for (const OrderedTrial& trial : order) {
    storage::CellRecord& cell = run.cells[first_cell + trial.variant_index];
    cell.trials.push_back({trial.trial_index, trial.block, ++position});
  }
  for (size_t i = first_cell; i < run.cells.size(); ++i) {
    run.cells[i].attempts.resize(run.cells[i].trials.size());
  }
}

std::string JoinReasons(const std::vector<LeftOutHost>& left_out) {
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < left_out.size() && i < kMost; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : "; ", left_out[i].host, left_out[i].reason);
  }
  if (left_out.size() > kMost) text += fmt::format("; and {} more", left_out.size() - kMost);
  return text;
}

storage::RunRecord Header(const spec::Sweep& sweep, const RunRequest& request) {
  storage::RunRecord run;
  run.run_id = request.run_id;
  run.request_id = request.request_id;
  run.sweep = sweep.name;
  run.file_name = request.file_name;
  run.sweep_yaml = request.sweep_yaml;
  run.sets = request.sets;
  run.note = request.note;
  run.labels = request.labels;
  run.labels.insert(sweep.labels.begin(), sweep.labels.end());
  run.priority = sweep.priority;
  run.order_kind = Name(sweep.order);
  run.order_seed = sweep.seed.value_or(request.drawn_seed);
  run.compare_factor = sweep.compare_factor;
  run.compare_baseline = sweep.compare_baseline;
  run.repetitions_min = sweep.repetitions_min;
  run.repetitions_max = sweep.repetitions_max;
  run.attempts_limit = sweep.attempts_limit;
  run.host_wait_ns = sweep.host_wait.count();
  run.stops_host_on_crash = sweep.stops_host_on_crash;
  run.min_change = sweep.min_change;
  run.created_utc = request.created_utc;
  for (uint32_t index = 0; index < sweep.variants.size(); ++index) {
    const spec::SweepVariant& variant = sweep.variants[index];
    run.trial_timeout_ns.push_back(variant.trial_timeout.count());
    run.variants.push_back({index, variant.variant_id, settings::ToProto(variant.variant),
                            variant.text, variant.arm, variant.comparison});
  }
  return run;
}

}  // namespace

Result<BuiltRun> BuildRun(const spec::Sweep& sweep, std::span<const HostView> hosts,
                          const RunRequest& request) {
  std::vector<const HostView*> by_name;
  for (const HostView& host : hosts) by_name.push_back(&host);
  std::ranges::sort(by_name, {}, [](const HostView* host) { return host->record.name; });

  BuiltRun built{Header(sweep, request), {}};
  std::vector<const HostView*> taken;
  for (const HostView* host : by_name) {
    std::string reason = WhyLeftOut(sweep, *host);
    if (reason.empty()) {
      taken.push_back(host);
    } else {
      built.left_out.push_back({host->record.name, std::move(reason)});
    }
  }
  const uint64_t num_trials =
      uint64_t{sweep.repetitions_max} * sweep.variants.size() * taken.size();
  if (num_trials > kMaxTrials) {
    return InvalidArgument(fmt::format(
        "{} trials ({} variants, {} repetitions, {} hosts) are too many; at most {} a "
        "run: fewer repetitions, levels or hosts",
        num_trials, sweep.variants.size(), sweep.repetitions_max, taken.size(), kMaxTrials));
  }
  for (const HostView* host : taken) AddHost(sweep, host->record, built.run);
  for (const std::string& name : sweep.hosts.names) {
    const bool is_known = std::ranges::any_of(
        by_name, [&](const HostView* host) { return host->record.name == name; });
    if (!is_known) built.left_out.push_back({name, "was never seen"});
  }
  if (built.run.cells.empty()) {
    return FailedPrecondition(built.left_out.empty()
                                  ? "no host: no agent has ever attached; start pipeyard-agent"
                                  : "no host matches: " + JoinReasons(built.left_out));
  }
  return built;
}

bool GlobMatches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<Nanos> ExpectedTrialTime(const v1::VariantSettings& variant) {
  int64_t total = 0;
  bool has_duration = false;
  for (const v1::Setting& setting : variant.settings()) {
    if (setting.name() != "duration" && setting.name() != "warmup") continue;
    if (setting.value().kind_case() != v1::Value::kInteger) return std::nullopt;
    total += setting.value().integer();
    // A duration of 0 says that the workload ends when its work is done.
    has_duration = has_duration || (setting.name() == "duration" && setting.value().integer() > 0);
  }
  if (!has_duration) return std::nullopt;
  return Nanos(total) + kStartUp;
}

}  // namespace pipeyard::scheduler
