// ModelStore: the store's contract in memory, for tests and simulation. Stricter than a real store:
// a mutation that a correct scheduler never makes (an attempt of a trial that is not there, a frame
// past a gap, a second open attempt on a host) is kInternal, so that a test sees it.
//
// Thread safety: confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/store.h"

namespace pipeyard::scheduler {

class ModelStore final : public storage::Store {
 public:
  explicit ModelStore(std::string store_id) : identity_{std::move(store_id), 1} {}

  storage::StoreIdentity identity() const override { return identity_; }
  // What opening it again after a crash does.
  void Reopen() { ++identity_.epoch; }

  Status Apply(std::span<const storage::Mutation> mutations) override;
  Result<std::vector<storage::HostRecord>> ListHosts() override;
  Result<std::vector<storage::RunRecord>> LoadActiveRuns() override;
  Result<std::vector<storage::RunSummaryRecord>> ListRuns(
      uint32_t limit, const std::string& before_run_id) override;
  Result<std::string> ResolveRun(const std::string& reference) override;
  Result<storage::RunRecord> LoadRun(const std::string& run_id) override;
  Result<storage::RunSummaryRecord> LoadRunSummary(const std::string& run_id) override;
  Result<std::string> FindRunByRequest(const std::string& request_id) override;
  Result<std::vector<storage::AttemptData>> LoadAttemptData(const std::string& run_id) override;
  Result<storage::AttemptDetails> LoadAttemptDetails(const std::string& attempt_id) override;
  Result<bool> KnowsAttempt(const std::string& attempt_id) override;

  const std::map<std::string, storage::RunRecord>& runs() const { return runs_; }
  const storage::AttemptRecord* FindAttempt(const std::string& attempt_id) const;
  // Frames of the attempt that are stored or set aside.
  const std::map<uint64_t, v1::Frame>& FramesOf(const std::string& attempt_id) const;
  size_t num_orphans() const { return orphans_.size(); }
  size_t num_audits() const { return num_audits_; }

  // What Apply() fails with, before it changes anything; OK: it works.
  void FailWith(Status status) { failure_ = std::move(status); }

  // As after restoring an older backup: forgets the attempt.
  void ForgetAttempt(const std::string& attempt_id);

 private:
  Status ApplyOne(const storage::InsertRun& mutation);
  Status ApplyOne(const storage::UpsertHost& mutation);
  Status ApplyOne(const storage::TouchHost& mutation);
  Status ApplyOne(const storage::SetRunState& mutation);
  Status ApplyOne(const storage::SetCellState& mutation);
  Status ApplyOne(const storage::SetTrialState& mutation);
  Status ApplyOne(const storage::InsertAttempt& mutation);
  Status ApplyOne(const storage::RemoveAttempt& mutation);
  Status ApplyOne(const storage::EndAttempt& mutation);
  Status ApplyOne(const storage::StoreFrame& mutation);
  Status ApplyOne(const storage::StoreOrphan& mutation);
  Status ApplyOne(const storage::Audit& mutation);

  storage::CellRecord* FindCell(const std::string& run_id, const std::string& host_id,
                                uint32_t variant_index);
  storage::AttemptRecord* MutableAttempt(const std::string& attempt_id);
  storage::RunSummaryRecord Summarize(const storage::RunRecord& run) const;

  storage::StoreIdentity identity_;
  std::map<std::string, storage::HostRecord> hosts_;
  std::map<std::string, storage::RunRecord> runs_;
  std::map<std::string, storage::TrialKey> trial_of_attempt_;
  std::map<std::string, std::map<uint64_t, v1::Frame>> frames_;
  std::set<std::pair<std::string, uint64_t>> orphans_;
  size_t num_audits_ = 0;
  Status failure_;
};

}  // namespace pipeyard::scheduler
