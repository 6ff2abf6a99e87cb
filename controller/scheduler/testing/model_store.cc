#include "controller/scheduler/testing/model_store.h"

#include <algorithm>
#include <variant>

#include "controller/scheduler/transitions.h"

namespace pipeyard::scheduler {

using storage::AttemptRecord;
using storage::CellRecord;
using storage::RunRecord;

Status ModelStore::Apply(std::span<const storage::Mutation> mutations) {
  PIPEYARD_RETURN_IF_ERROR(failure_);
  for (const storage::Mutation& mutation : mutations) {
    PIPEYARD_RETURN_IF_ERROR(std::visit([this](const auto& m) { return ApplyOne(m); }, mutation));
  }
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::InsertRun& mutation) {
  if (runs_.contains(mutation.run.run_id)) return AlreadyExists("run " + mutation.run.run_id);
  runs_[mutation.run.run_id] = mutation.run;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::UpsertHost& mutation) {
  hosts_[mutation.host.host_id] = mutation.host;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::TouchHost& mutation) {
  const auto it = hosts_.find(mutation.host_id);
  if (it == hosts_.end()) return Internal("touch of unknown host " + mutation.host_id);
  it->second.last_seen_utc = mutation.last_seen_utc;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::SetRunState& mutation) {
  const auto it = runs_.find(mutation.run_id);
  if (it == runs_.end()) return Internal("state of unknown run " + mutation.run_id);
  if (IsTerminal(it->second.state)) return Internal("state of ended run " + mutation.run_id);
  it->second.state = mutation.state;
  it->second.reason = mutation.reason;
  if (IsTerminal(mutation.state)) it->second.ended_utc = mutation.at_utc;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::SetCellState& mutation) {
  CellRecord* cell = FindCell(mutation.run_id, mutation.host_id, mutation.variant_index);
  if (cell == nullptr) return Internal("state of unknown cell");
  if (IsTerminal(cell->state)) return Internal("state of ended cell");
  cell->state = mutation.state;
  cell->reason = mutation.reason;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::SetTrialState& mutation) {
  const storage::TrialKey& key = mutation.trial;
  CellRecord* cell = FindCell(key.run_id, key.host_id, key.variant_index);
  if (cell == nullptr || key.trial_index == 0 || key.trial_index > cell->trials.size()) {
    return Internal("state of unknown trial");
  }
  storage::TrialRecord& trial = cell->trials[key.trial_index - 1];
  if (IsTerminal(trial.state)) return Internal("state of ended trial");
  trial.state = mutation.state;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::InsertAttempt& mutation) {
  const storage::TrialKey& key = mutation.trial;
  CellRecord* cell = FindCell(key.run_id, key.host_id, key.variant_index);
  if (cell == nullptr || key.trial_index == 0 || key.trial_index > cell->trials.size()) {
    return Internal("attempt of unknown trial");
  }
  for (const auto& [id, of] : trial_of_attempt_) {
    if (of.host_id == key.host_id && !FindAttempt(id)->outcome) {
      return Internal("host " + key.host_id + " leased twice");
    }
  }
  std::vector<AttemptRecord>& attempts = cell->attempts[key.trial_index - 1];
  if (mutation.attempt.number != attempts.size() + 1) return Internal("attempt number");
  attempts.push_back(mutation.attempt);
  if (!trial_of_attempt_.emplace(mutation.attempt.attempt_id, key).second) {
    return Internal("attempt id used twice");
  }
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::RemoveAttempt& mutation) {
  if (FindAttempt(mutation.attempt_id) == nullptr) return Internal("removal of unknown attempt");
  if (frames_.contains(mutation.attempt_id)) return Internal("removal of attempt with frames");
  ForgetAttempt(mutation.attempt_id);
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::EndAttempt& mutation) {
  AttemptRecord* attempt = MutableAttempt(mutation.attempt_id);
  if (attempt == nullptr) return Internal("end of unknown attempt " + mutation.attempt_id);
  const bool is_revival =
      attempt->outcome == storage::Outcome::kLost && mutation.outcome == storage::Outcome::kOk;
  if (attempt->outcome && !is_revival) return Status::Ok();
  attempt->outcome = mutation.outcome;
  attempt->reason_code = mutation.reason_code;
  attempt->reason_text = mutation.reason_text;
  attempt->ended_utc = mutation.at_utc;
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::StoreFrame& mutation) {
  AttemptRecord* attempt = MutableAttempt(mutation.frame.attempt_id());
  if (attempt == nullptr) return Internal("frame of unknown attempt");
  if (mutation.frame.sequence() > attempt->frames_through + 1) return Internal("frame past a gap");
  frames_[attempt->attempt_id].emplace(mutation.frame.sequence(), mutation.frame);
  attempt->frames_through = std::max(attempt->frames_through, mutation.frame.sequence());
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::StoreOrphan& mutation) {
  frames_[mutation.frame.attempt_id()].emplace(mutation.frame.sequence(), mutation.frame);
  orphans_.emplace(mutation.frame.attempt_id(), mutation.frame.sequence());
  return Status::Ok();
}

Status ModelStore::ApplyOne(const storage::Audit&) {
  ++num_audits_;
  return Status::Ok();
}

Result<std::vector<storage::HostRecord>> ModelStore::ListHosts() {
  std::vector<storage::HostRecord> hosts;
  for (const auto& [id, host] : hosts_) hosts.push_back(host);
  return hosts;
}

Result<std::vector<RunRecord>> ModelStore::LoadActiveRuns() {
  std::vector<RunRecord> active;
  for (const auto& [id, run] : runs_) {
    if (IsTerminal(run.state)) continue;
    active.push_back(run);
    for (CellRecord& cell : active.back().cells) {
      for (auto& attempts : cell.attempts) {
        for (AttemptRecord& attempt : attempts) {
          if (attempt.outcome) continue;
          for (const auto& [sequence, frame] : FramesOf(attempt.attempt_id)) {
            attempt.metrics.insert(attempt.metrics.end(), frame.metrics().begin(),
                                   frame.metrics().end());
          }
        }
      }
    }
  }
  return active;
}

storage::RunSummaryRecord ModelStore::Summarize(const RunRecord& run) const {
  storage::RunSummaryRecord summary;
  summary.run_id = run.run_id;
  summary.sweep = run.sweep;
  summary.state = run.state;
  summary.created_utc = run.created_utc;
  summary.ended_utc = run.ended_utc;
  summary.variants = static_cast<uint32_t>(run.variants.size());
  summary.note = run.note;
  summary.labels = run.labels;
  std::set<std::string> hosts;
  for (const CellRecord& cell : run.cells) {
    hosts.insert(cell.host_id);
    for (const storage::TrialRecord& trial : cell.trials) {
      ++summary.trials;
      if (trial.state == storage::TrialState::kDone) ++summary.trials_done;
    }
  }
  summary.hosts = static_cast<uint32_t>(hosts.size());
  return summary;
}

Result<std::vector<storage::RunSummaryRecord>> ModelStore::ListRuns(
    uint32_t limit, const std::string& before_run_id) {
  std::vector<storage::RunSummaryRecord> page;
  for (auto it = runs_.rbegin(); it != runs_.rend() && page.size() < limit; ++it) {
    if (before_run_id.empty() || it->first < before_run_id) page.push_back(Summarize(it->second));
  }
  return page;
}

Result<std::string> ModelStore::ResolveRun(const std::string& reference) {
  if (reference == "latest" && !runs_.empty()) return runs_.rbegin()->first;
  if (runs_.contains(reference)) return reference;
  return NotFound("no run " + reference);
}

Result<RunRecord> ModelStore::LoadRun(const std::string& run_id) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return NotFound("no run " + run_id);
  return it->second;
}

Result<storage::RunSummaryRecord> ModelStore::LoadRunSummary(const std::string& run_id) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return NotFound("no run " + run_id);
  return Summarize(it->second);
}

Result<std::string> ModelStore::FindRunByRequest(const std::string& request_id) {
  for (const auto& [id, run] : runs_) {
    if (run.request_id == request_id) return id;
  }
  return NotFound("no run of request " + request_id);
}

Result<std::vector<storage::AttemptData>> ModelStore::LoadAttemptData(const std::string& run_id) {
  std::vector<storage::AttemptData> all;
  for (const auto& [id, key] : trial_of_attempt_) {
    const AttemptRecord& attempt = *FindAttempt(id);
    if (key.run_id != run_id || !attempt.outcome) continue;
    storage::AttemptData data;
    data.trial = key;
    data.attempt = attempt;
    for (const auto& [sequence, frame] : FramesOf(id)) {
      data.metrics.insert(data.metrics.end(), frame.metrics().begin(), frame.metrics().end());
    }
    all.push_back(std::move(data));
  }
  return all;
}

Result<storage::AttemptDetails> ModelStore::LoadAttemptDetails(const std::string& attempt_id) {
  if (!trial_of_attempt_.contains(attempt_id)) return NotFound("no attempt " + attempt_id);
  storage::AttemptDetails details;
  for (const auto& [sequence, frame] : FramesOf(attempt_id)) {
    details.outputs.insert(details.outputs.end(), frame.outputs().begin(), frame.outputs().end());
    details.resolved.insert(details.resolved.end(), frame.resolved().begin(),
                            frame.resolved().end());
  }
  return details;
}

Result<bool> ModelStore::KnowsAttempt(const std::string& attempt_id) {
  return trial_of_attempt_.contains(attempt_id);
}

const std::map<uint64_t, v1::Frame>& ModelStore::FramesOf(const std::string& attempt_id) const {
  static const std::map<uint64_t, v1::Frame> kNone;
  const auto it = frames_.find(attempt_id);
  return it == frames_.end() ? kNone : it->second;
}

void ModelStore::ForgetAttempt(const std::string& attempt_id) {
  const auto it = trial_of_attempt_.find(attempt_id);
  if (it == trial_of_attempt_.end()) return;
  CellRecord* cell = FindCell(it->second.run_id, it->second.host_id, it->second.variant_index);
  std::erase_if(cell->attempts[it->second.trial_index - 1],
                [&](const AttemptRecord& attempt) { return attempt.attempt_id == attempt_id; });
  trial_of_attempt_.erase(it);
  frames_.erase(attempt_id);
}

CellRecord* ModelStore::FindCell(const std::string& run_id, const std::string& host_id,
                                 uint32_t variant_index) {
  const auto run = runs_.find(run_id);
  if (run == runs_.end()) return nullptr;
  const auto it = std::ranges::find_if(run->second.cells, [&](const CellRecord& cell) {
    return cell.host_id == host_id && cell.variant_index == variant_index;
  });
  return it == run->second.cells.end() ? nullptr : &*it;
}

AttemptRecord* ModelStore::MutableAttempt(const std::string& attempt_id) {
  const auto it = trial_of_attempt_.find(attempt_id);
  if (it == trial_of_attempt_.end()) return nullptr;
  CellRecord* cell = FindCell(it->second.run_id, it->second.host_id, it->second.variant_index);
  auto& attempts = cell->attempts[it->second.trial_index - 1];
  return &*std::ranges::find(attempts, attempt_id, &AttemptRecord::attempt_id);
}

const AttemptRecord* ModelStore::FindAttempt(const std::string& attempt_id) const {
  return const_cast<ModelStore*>(this)->MutableAttempt(attempt_id);
}

}  // namespace pipeyard::scheduler
