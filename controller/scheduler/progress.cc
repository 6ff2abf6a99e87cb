// What is shown of active runs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/scheduler/build_run.h"
#include "controller/scheduler/scheduler.h"

namespace pipeyard::scheduler {
namespace {

// Up to the UUID's second group, as the command line shows runs.
constexpr size_t kShortIdCharacters = 13;

// The longest of its hosts' sums; 0 where a variant does not say how long it takes.
Nanos ExpectedRemaining(const Run& run) {
  std::vector<std::optional<Nanos>> by_variant;
  for (const storage::VariantRecord& variant : run.header.variants) {
    by_variant.push_back(ExpectedTrialTime(variant.settings));
  }
  Nanos longest(0);
  for (const auto& [host_id, part] : run.hosts) {
    Nanos sum(0);
    for (const uint32_t index : part.cells) {
      const Cell& cell = run.cells[index];
      const auto num_left = static_cast<int64_t>(cell.trials.size() - cell.num_terminal);
      if (num_left == 0) continue;
      const std::optional<Nanos>& each = by_variant[cell.variant_index];
      if (!each) return Nanos(0);
      sum += *each * num_left;
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace

std::optional<v1::RunProgress> Scheduler::Progress(const std::string& run_id) const {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return std::nullopt;
  const Run& run = *it->second;
  v1::RunProgress progress;
  v1::RunSummary& summary = *progress.mutable_summary();
  summary.set_run_id(run_id);
  summary.set_sweep(run.header.sweep);
  summary.set_state(storage::Name(run.header.state));
  summary.set_created_utc_ns(run.header.created_utc);
  summary.set_ended_utc_ns(run.header.ended_utc);
  summary.set_hosts(static_cast<uint32_t>(run.hosts.size()));
  summary.set_variants(static_cast<uint32_t>(run.header.variants.size()));
  summary.set_trials(run.num_trials);
  summary.set_trials_done(run.num_done);
  summary.set_note(run.header.note);
  summary.mutable_labels()->insert(run.header.labels.begin(), run.header.labels.end());
  for (const auto& [host_id, part] : run.hosts) {
    v1::RunProgress::HostProgress& host = *progress.add_hosts();
    host.set_host(part.host_name);
    host.set_trials(part.num_trials);
    host.set_done(part.num_terminal - part.num_unsuccessful);
    host.set_failed(part.num_unsuccessful);
    host.set_now(WhatRuns(run, host_id, part));
  }
  std::sort(progress.mutable_hosts()->begin(), progress.mutable_hosts()->end(),
            [](const auto& a, const auto& b) { return a.host() < b.host(); });
  progress.set_expected_remaining_ns(ExpectedRemaining(run).count());
  return progress;
}

std::string Scheduler::WhatRuns(const Run& run, const std::string& host_id,
                                const RunHost& part) const {
  if (!part.given_up.empty()) return part.given_up;
  if (part.num_terminal == part.num_trials) return "";
  const HostState& host = hosts_.at(host_id);
  const auto current = attempts_.find(host.current);
  if (current != attempts_.end() && current->second.run_id != run.header.run_id) {
    return "waits for run " + current->second.run_id.substr(0, kShortIdCharacters);
  }
  if (!host.is_connected) return "away";
  if (current == attempts_.end() && host.refusing_since) return host.refusing_why;
  if (current == attempts_.end()) return "";
  const Cell& cell = run.cells[current->second.cell_index];
  const std::string& text = run.header.variants[cell.variant_index].text;
  return fmt::format("{}{}{}/{}", text, text.empty() ? "" : " ", current->second.trial_index,
                     cell.trials.size());
}

std::string Scheduler::RunningOn(const std::string& host_id) const {
  const auto host = hosts_.find(host_id);
  if (host == hosts_.end()) return "";
  const auto it = attempts_.find(host->second.current);
  if (it == attempts_.end()) return "";
  const Run& run = *runs_.at(it->second.run_id);
  const Cell& cell = run.cells[it->second.cell_index];
  return fmt::format("{}/{}/{}", cell.host_name, run.header.variants[cell.variant_index].variant_id,
                     it->second.trial_index);
}

std::optional<std::string> Scheduler::FindRequest(const std::string& request_id) const {
  const auto it = requests_.find(request_id);
  if (it == requests_.end()) return std::nullopt;
  return it->second;
}

bool Scheduler::IsConnected(const std::string& host_id) const {
  const auto it = hosts_.find(host_id);
  return it != hosts_.end() && it->second.is_connected;
}

size_t Scheduler::num_connected_hosts() const {
  return static_cast<size_t>(
      std::ranges::count_if(hosts_, [](const auto& entry) { return entry.second.is_connected; }));
}

}  // namespace pipeyard::scheduler
