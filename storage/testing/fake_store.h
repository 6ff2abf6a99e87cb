// FakeStore: a Store that keeps nothing but the order of what it was given, and fails when told to.
//
// It is for tests of what writes to a store; its reads give kUnimplemented. Tests that read use
// OpenStore() in a TemporaryFolder. Thread safety: Thread-safe.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "storage/store.h"

namespace pipeyard::storage {

class FakeStore final : public Store {
 public:
  // The next calls of Apply() give these, one each, and keep nothing; OK where none is left.
  void FailNext(std::vector<Status> statuses) EXCLUDES(mutex_);
  // Every Apply() that holds an Audit of this subject gives `status`.
  void Poison(const std::string& subject, Status status) EXCLUDES(mutex_);

  // Subjects of the Audit mutations that were applied, by transaction.
  std::vector<std::vector<std::string>> transactions() const EXCLUDES(mutex_);
  int num_calls() const EXCLUDES(mutex_);

  StoreIdentity identity() const override { return {"fake", 1}; }
  Status Apply(std::span<const Mutation> mutations) override EXCLUDES(mutex_);
  Result<std::vector<HostRecord>> ListHosts() override;
  Result<std::vector<RunRecord>> LoadActiveRuns() override;
  Result<std::vector<RunSummaryRecord>> ListRuns(uint32_t limit,
                                                 const std::string& before_run_id) override;
  Result<std::string> ResolveRun(const std::string& reference) override;
  Result<RunRecord> LoadRun(const std::string& run_id) override;
  Result<RunSummaryRecord> LoadRunSummary(const std::string& run_id) override;
  Result<std::string> FindRunByRequest(const std::string& request_id) override;
  Result<std::vector<AttemptData>> LoadAttemptData(const std::string& run_id) override;
  Result<AttemptDetails> LoadAttemptDetails(const std::string& attempt_id) override;
  Result<bool> KnowsAttempt(const std::string& attempt_id) override;

 private:
  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::deque<Status> failures_ GUARDED_BY(mutex_);
  std::map<std::string, Status> poison_ GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> transactions_ GUARDED_BY(mutex_);
  int num_calls_ GUARDED_BY(mutex_) = 0;
};

}  // namespace pipeyard::storage
