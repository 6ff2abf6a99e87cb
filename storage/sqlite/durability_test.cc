// What Apply() promised survives power loss, and a failing disk leaves the store before or after a
// batch, never between.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>

#include "storage/sqlite/sqlite_store.h"
#include "storage/testing/fault_vfs.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::storage {
namespace {

using Loss = FaultVfs::Loss;

constexpr uint64_t kRun = 10;
constexpr uint64_t kAttempt = 100;
constexpr int kNumBatches = 4;

uint64_t Seed() {
  const char* text = std::getenv("PIPEYARD_SEED");
  const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  std::printf("PIPEYARD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A small log, so that copying it into the database is among the steps that fail.
Result<std::unique_ptr<Store>> Open(const TemporaryFolder& folder, const FaultVfs& disk) {
  SqliteOptions options;
  options.state_dir = folder.path();
  options.vfs = disk.name();
  options.wal_autocheckpoint_pages = 8;
  return OpenSqliteStore(options);
}

std::unique_ptr<Store> MustOpen(const TemporaryFolder& folder, const FaultVfs& disk) {
  Result<std::unique_ptr<Store>> store = Open(folder, disk);
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  return store.ok() ? std::move(store).value() : nullptr;
}

Status ApplyBasics(Store& store) {
  const std::vector<Mutation> batch = {UpsertHost{SampleHost(1)}, InsertRun{SampleRun(kRun)},
                                       InsertAttempt{SampleTrial(kRun), SampleAttempt(kAttempt)}};
  return store.Apply(batch);
}

// A store that holds the basics and is closed, made once and copied: making one takes as many steps
// as all the rest of a test.
void CopyBasics(const TemporaryFolder& folder) {
  static const TemporaryFolder basics;
  if (!std::filesystem::exists(basics.StorePath())) {
    const std::unique_ptr<Store> store = OpenStore(basics.path(), SystemClock()).value();
    EXPECT_TRUE(ApplyBasics(*store).ok());
  }
  std::filesystem::copy_file(basics.StorePath(), folder.StorePath());
}

// Batch `number` (from 1) changes three tables at once.
Status ApplyBatch(Store& store, int number) {
  const auto sequence = static_cast<uint64_t>(number);
  const std::vector<Mutation> batch = {
      SetRunState{SampleId(kRun), RunState::kRunning, fmt::format("batch {}", number), 1},
      StoreFrame{SampleFrame(kAttempt, sequence, false), number},
      SetTrialState{SampleTrial(kRun),
                    number % 2 == 0 ? TrialState::kRunning : TrialState::kLeased}};
  return store.Apply(batch);
}

// Number of the latest batch of which everything is there; -1 where one is there in part, which
// must not be.
int WholeBatches(Store& store) {
  const Result<std::vector<RunRecord>> runs = store.LoadActiveRuns();
  EXPECT_TRUE(runs.ok()) << runs.status().ToString();
  if (!runs.ok() || runs->size() != 1) return -1;
  const RunRecord& run = runs->at(0);
  const AttemptRecord& attempt = run.cells[0].attempts[0].at(0);
  const int frames = static_cast<int>(attempt.frames_through);
  const std::string reason = frames == 0 ? "" : fmt::format("batch {}", frames);
  const TrialState state = frames == 0       ? TrialState::kPending
                           : frames % 2 == 0 ? TrialState::kRunning
                                             : TrialState::kLeased;
  const bool is_whole = run.reason == reason && run.cells[0].trials[0].state == state &&
                        attempt.metrics.size() == static_cast<size_t>(frames) * 2;
  return is_whole ? frames : -1;
}

void LosePowerAndCheck(Loss loss, uint64_t seed) {
  for (int cut_at = 0;; ++cut_at) {
    TemporaryFolder folder;
    CopyBasics(folder);
    FaultVfs disk;
    std::unique_ptr<Store> store = MustOpen(folder, disk);
    ASSERT_NE(store, nullptr);
    disk.CutPowerAt(cut_at);
    int num_promised = 0;
    while (num_promised < kNumBatches && ApplyBatch(*store, num_promised + 1).ok()) ++num_promised;
    const bool was_cut = disk.has_failed();
    disk.CutPower();
    store.reset();
    disk.RestorePower(loss, seed + static_cast<uint64_t>(cut_at));

    store = MustOpen(folder, disk);

    ASSERT_NE(store, nullptr) << "cut at " << cut_at;
    const int num_kept = WholeBatches(*store);
    EXPECT_GE(num_kept, num_promised) << "cut at " << cut_at;
    // The batch on its way may have reached the disk without its promise.
    EXPECT_LE(num_kept, num_promised + 1) << "cut at " << cut_at;
    EXPECT_TRUE(ApplyBatch(*store, num_kept + 1).ok()) << "cut at " << cut_at;
    if (!was_cut) return;
  }
}

TEST(PowerLoss, AtAnyStepLeavesWhatWasPromisedWhenAllUnsyncedBytesAreLost) {
  LosePowerAndCheck(Loss::kAll, 0);
}

TEST(PowerLoss, AtAnyStepLeavesWhatWasPromisedWhenSomeUnsyncedSectorsAreLost) {
  LosePowerAndCheck(Loss::kSome, Seed());
}

TEST(PowerLoss, WhileTheStoreIsMadeLeavesNoneOrAWholeOne) {
  for (int cut_at = 0;; ++cut_at) {
    TemporaryFolder folder;
    FaultVfs disk;
    disk.CutPowerAt(cut_at);
    Result<std::unique_ptr<Store>> store = Open(folder, disk);
    const bool was_cut = disk.has_failed();
    disk.CutPower();
    store = Internal("closed");
    disk.RestorePower(Loss::kAll, 0);

    std::unique_ptr<Store> again = MustOpen(folder, disk);

    ASSERT_NE(again, nullptr) << "cut at " << cut_at;
    EXPECT_TRUE(ApplyBasics(*again).ok());
    if (!was_cut) return;
  }
}

// The proof that the tests above can fail: with synchronous=NORMAL the same disk loses a commit.
TEST(PowerLoss, LosesACommitThatWasNotSynced) {
  TemporaryFolder folder;
  FaultVfs disk;
  const std::string path = folder.path() + "/normal.db";
  {
    std::unique_ptr<Connection> connection =
        Connection::Open(path, Connection::Mode::kCreate, disk.name()).value();
    ASSERT_TRUE(connection
                    ->Execute("CREATE TABLE t (x INTEGER); PRAGMA journal_mode = WAL; "
                              "PRAGMA synchronous = NORMAL")
                    .ok());
    ASSERT_TRUE(connection->Execute("INSERT INTO t VALUES (1)").ok());
    disk.CutPower();
  }
  disk.RestorePower(Loss::kAll, 0);
  std::unique_ptr<Connection> connection =
      Connection::Open(path, Connection::Mode::kReadWrite, disk.name()).value();

  Query query(*connection, "SELECT count(*) FROM t");

  ASSERT_TRUE(query.Next()) << query.status().ToString();
  EXPECT_EQ(query.Int(0), 0);
}

struct DiskFault {
  int write_code;
  bool is_lasting;
  StatusCode expected;
};

class FailingDisk : public ::testing::TestWithParam<DiskFault> {};

INSTANTIATE_TEST_SUITE_P(
    Faults, FailingDisk,
    ::testing::Values(DiskFault{SQLITE_IOERR_WRITE, false, StatusCode::kUnavailable},
                      DiskFault{SQLITE_IOERR_WRITE, true, StatusCode::kUnavailable},
                      DiskFault{SQLITE_FULL, false, StatusCode::kResourceExhausted},
                      DiskFault{SQLITE_FULL, true, StatusCode::kResourceExhausted}),
    [](const auto& fault) {
      return fmt::format("{}{}", fault.param.write_code == SQLITE_FULL ? "Full" : "IoError",
                         fault.param.is_lasting ? "Lasting" : "Once");
    });

TEST_P(FailingDisk, LeavesTheStoreBeforeOrAfterABatchAndTakesItWhenItIsWellAgain) {
  const DiskFault fault = GetParam();
  for (int fail_at = 0;; ++fail_at) {
    TemporaryFolder folder;
    CopyBasics(folder);
    FaultVfs disk;
    std::unique_ptr<Store> store = MustOpen(folder, disk);
    ASSERT_NE(store, nullptr);
    ASSERT_TRUE(ApplyBatch(*store, 1).ok());
    disk.FailAt(fail_at, fault.write_code, fault.is_lasting);

    const Status status = ApplyBatch(*store, 2);

    disk.Heal();
    // A failing sync is an I/O error on any disk.
    if (!status.ok() && status.code() != StatusCode::kUnavailable) {
      EXPECT_EQ(status.code(), fault.expected) << fail_at << ": " << status.ToString();
    }
    EXPECT_EQ(WholeBatches(*store), status.ok() ? 2 : 1) << fail_at << ": " << status.ToString();
    EXPECT_TRUE(ApplyBatch(*store, 2).ok()) << fail_at;
    EXPECT_EQ(WholeBatches(*store), 2) << fail_at;
    EXPECT_TRUE(ApplyBatch(*store, 3).ok()) << fail_at;
    store.reset();
    store = MustOpen(folder, disk);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(WholeBatches(*store), 3) << fail_at;
    if (!disk.has_failed()) return;
  }
}

TEST_P(FailingDisk, IsReportedByOpeningAndOpeningWorksWhenItIsWellAgain) {
  const DiskFault fault = GetParam();
  for (int fail_at = 0;; ++fail_at) {
    TemporaryFolder folder;
    FaultVfs disk;
    disk.FailAt(fail_at, fault.write_code, fault.is_lasting);
    Result<std::unique_ptr<Store>> failed = Open(folder, disk);
    const bool has_failed = disk.has_failed();
    disk.Heal();
    if (!failed.ok() && failed.status().code() != StatusCode::kUnavailable) {
      EXPECT_EQ(failed.status().code(), fault.expected) << failed.status().ToString();
    }
    failed = Internal("closed");

    std::unique_ptr<Store> store = MustOpen(folder, disk);

    ASSERT_NE(store, nullptr) << fail_at;
    EXPECT_TRUE(ApplyBasics(*store).ok());
    if (!has_failed) return;
  }
}

}  // namespace
}  // namespace pipeyard::storage
