// The core on real threads over the real store: requests from several threads at once. For TSan.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "controller/core/core.h"
#include "controller/core/testing/core_fixture.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::core {
namespace {

// Counts down; Wait() returns at zero.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}
  void CountDown() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (--count_ == 0) zero_.NotifyAll();
  }
  void Wait() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (count_ > 0) zero_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar zero_;
  int count_ GUARDED_BY(mutex_);
};

TEST(CoreThreads, RequestsFromSeveralThreadsAreAllAnswered) {
  SetLogLevel(LogLevel::kError);
  storage::TemporaryFolder folder;
  auto store = storage::OpenStore(folder.path(), SystemClock());
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  // Away, for less than host_wait: runs can be submitted, and wait.
  storage::HostRecord host = scheduler::TestHost(1).record;
  host.first_seen_utc = host.last_seen_utc = SystemClock().UtcNow().count();
  const storage::Mutation mutations[] = {storage::UpsertHost{host}};
  ASSERT_TRUE((*store)->Apply(mutations).ok());
  IdSource ids(SystemClock());
  SerialExecutor loop("loop");
  ingest::Committer committer(**store, loop);
  const auto readers = Readers::WithThreads(3);
  Core core(loop, SystemClock(), **store, committer, *readers, ids, CoreOptions());
  ASSERT_TRUE(core.Start().ok());

  constexpr int kThreads = 4;
  constexpr int kEach = 10;
  Latch ended(kThreads * kEach), answered(kThreads * kEach * 4);
  {
    std::vector<std::unique_ptr<SerialExecutor>> users;
    for (int user = 0; user < kThreads; ++user) {
      users.push_back(std::make_unique<SerialExecutor>("user" + std::to_string(user)));
      users.back()->Post([&, user] {
        for (int i = 0; i < kEach; ++i) {
          const auto request = SubmitRequest(static_cast<uint32_t>(user * kEach + i), 2);
          core.SubmitSweep(request, "cli:test", [&](Result<v1::SubmitSweepResponse> submitted) {
            ASSERT_TRUE(submitted.ok()) << submitted.status().ToString();
            v1::GetRunRequest run;
            run.set_run(submitted->run_id());
            core.WatchRun(run,
                          {.on_progress = [](const v1::RunProgress&) {},
                           .on_end = [&](const Status&) { ended.CountDown(); }},
                          [](WatchId) {});
            v1::CancelRunRequest cancel;
            cancel.set_run(submitted->run_id());
            core.CancelRun(cancel, "cli:test", [&](Result<v1::RunProgress> progress) {
              EXPECT_TRUE(progress.ok()) << progress.status().ToString();
              answered.CountDown();
            });
          });
          core.ListRuns({}, [&](auto runs) {
            EXPECT_TRUE(runs.ok());
            answered.CountDown();
          });
          core.ListHosts([&](auto hosts) {
            EXPECT_TRUE(hosts.ok());
            answered.CountDown();
          });
          v1::PlanSweepRequest plan;
          plan.mutable_sweep()->set_yaml(SweepYaml(6));
          core.PlanSweep(plan, [&](auto planned) {
            EXPECT_TRUE(planned.ok());
            answered.CountDown();
          });
          core.stats();
        }
      });
    }
    answered.Wait();
    ended.Wait();
  }
  core.BeginShutdown();
  EXPECT_TRUE(committer.FlushAndStop(Seconds(30)).ok());
  loop.Stop();

  const auto active = (*store)->LoadActiveRuns();
  ASSERT_TRUE(active.ok());
  EXPECT_TRUE(active->empty());
}

}  // namespace
}  // namespace pipeyard::core
