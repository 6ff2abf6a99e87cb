#include "storage/testing/fake_store.h"

#include <utility>

namespace pipeyard::storage {
namespace {

Status NoReads() { return Unimplemented("the fake store cannot be read"); }

}  // namespace

void FakeStore::FailNext(std::vector<Status> statuses) {
  MutexLock lock(mutex_);
  for (Status& status : statuses) failures_.push_back(std::move(status));
}

void FakeStore::Poison(const std::string& subject, Status status) {
  MutexLock lock(mutex_);
  poison_[subject] = std::move(status);
}

std::vector<std::vector<std::string>> FakeStore::transactions() const {
  MutexLock lock(mutex_);
  return transactions_;
}

int FakeStore::num_calls() const {
  MutexLock lock(mutex_);
  return num_calls_;
}

Status FakeStore::Apply(std::span<const Mutation> mutations) {
  MutexLock lock(mutex_);
  ++num_calls_;
  if (!failures_.empty()) {
    Status status = std::move(failures_.front());
    failures_.pop_front();
    if (!status.ok()) return status;
  }
  std::vector<std::string> subjects;
  for (const Mutation& mutation : mutations) {
    const Audit* audit = std::get_if<Audit>(&mutation);
    if (audit == nullptr) continue;
    const auto poison = poison_.find(audit->subject);
    if (poison != poison_.end()) return poison->second;
    subjects.push_back(audit->subject);
  }
  transactions_.push_back(std::move(subjects));
  return Status::Ok();
}

Result<std::vector<HostRecord>> FakeStore::ListHosts() { return NoReads(); }
Result<std::vector<RunRecord>> FakeStore::LoadActiveRuns() { return NoReads(); }
Result<std::vector<RunSummaryRecord>> FakeStore::ListRuns(uint32_t, const std::string&) {
  return NoReads();
}
Result<std::string> FakeStore::ResolveRun(const std::string&) { return NoReads(); }
Result<RunRecord> FakeStore::LoadRun(const std::string&) { return NoReads(); }
Result<RunSummaryRecord> FakeStore::LoadRunSummary(const std::string&) { return NoReads(); }
Result<std::string> FakeStore::FindRunByRequest(const std::string&) { return NoReads(); }
Result<std::vector<AttemptData>> FakeStore::LoadAttemptData(const std::string&) {
  return NoReads();
}
Result<AttemptDetails> FakeStore::LoadAttemptDetails(const std::string&) { return NoReads(); }
Result<bool> FakeStore::KnowsAttempt(const std::string&) { return NoReads(); }

}  // namespace pipeyard::storage
