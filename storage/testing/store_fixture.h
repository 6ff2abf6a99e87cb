// StoreTest: a gtest fixture with an open store in a folder of its own.
//
// Thread safety: Thread-compatible.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "storage/store.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::storage {

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_.reset();
    Result<std::unique_ptr<Store>> opened = OpenStore(folder_.path(), clock_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }

  Status Apply(std::vector<Mutation> mutations) { return store_->Apply(mutations); }

  void MustApply(std::vector<Mutation> mutations) {
    const Status status = Apply(std::move(mutations));
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  // Host 1, run 10 and its attempt 100.
  void InsertBasics() {
    MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
               InsertAttempt{SampleTrial(10), SampleAttempt(100)}});
  }

  RunRecord MustLoadRun(uint64_t number) {
    Result<RunRecord> run = store_->LoadRun(SampleId(number));
    EXPECT_TRUE(run.ok()) << run.status().ToString();
    return run.ok() ? std::move(run).value() : RunRecord();
  }

  std::vector<AttemptData> MustLoadData(uint64_t number) {
    Result<std::vector<AttemptData>> data = store_->LoadAttemptData(SampleId(number));
    EXPECT_TRUE(data.ok()) << data.status().ToString();
    return data.ok() ? std::move(data).value() : std::vector<AttemptData>();
  }

  std::vector<HostRecord> MustListHosts() {
    Result<std::vector<HostRecord>> hosts = store_->ListHosts();
    EXPECT_TRUE(hosts.ok()) << hosts.status().ToString();
    return hosts.ok() ? std::move(hosts).value() : std::vector<HostRecord>();
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  std::unique_ptr<Store> store_;
};

}  // namespace pipeyard::storage
