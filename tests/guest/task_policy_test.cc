// alloc_page() of a task against alloc_page() of the kernel, page by page and in order: pages that
// a task writes into a ramfs file are allocated as a pipe's are, and can be asked for once mapped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/guest/real_arenas.h"
#include "tests/guest/task_pages.h"

namespace pipeyard {
namespace {

using memory::ParsePolicy;
using memory::Policy;

class TaskPolicyTest : public RealArenasTest {
 protected:
  static constexpr uint64_t kPages = 40;

  void TearDown() override { SetTaskPolicy({}); }

  // The nodes of kPages pages in their order: the kernel's under the task's policy. `change` runs
  // before page `at`.
  std::vector<int> KernelNodes(const Policy& policy, uint64_t at = 0,
                               const std::function<void()>& change = {}) {
    RamfsFile file;
    EXPECT_EQ(SetTaskPolicy(policy), 0);
    for (uint64_t i = 1; i <= kPages; ++i) {
      if (i == at) change();
      EXPECT_TRUE(file.Write(i));
    }
    SetTaskPolicy({});
    return file.Nodes(kPages);
  }
  // The engine's.
  std::vector<int> EngineNodes(int index, const Policy& policy, uint64_t at = 0,
                               const std::function<void()>& change = {}) {
    PageWorker worker = pages_->MakeWorker(index);
    worker.policy.SetPolicy(policy);
    std::vector<int> nodes;
    std::vector<PageId> taken;
    for (uint64_t i = 1; i <= kPages; ++i) {
      if (i == at) change();
      taken.push_back(pages_->Allocate(worker));
      EXPECT_NE(taken.back(), kNoPage);
      nodes.push_back(KernelsNodeOf(taken.back()));
    }
    for (const PageId page : taken) pages_->Put(worker, page);
    return nodes;
  }
  // Weights of the kernel and of the engine.
  void SetWeights(const std::vector<int>& weights) {
    // A thread of its own: what the write allocates would move this task's interleaving.
    std::thread([&] { ASSERT_TRUE(WriteHostWeights(weights)); }).join();
    pages_->SetWeights(memory::ReadHostWeights(numa::HostFiles(), AllNodes()).value().table);
  }
};

TEST_F(TaskPolicyTest, PagesGoWhereTheKernelsGo) {
  const std::string all = AllNodes().ToString();
  const std::string last = std::to_string(AllNodes().Nodes().back());
  for (size_t index = 0; index < worker_cpus_.size(); ++index) {
    ASSERT_TRUE(RunOn(worker_cpus_[index]));
    for (const std::string& text :
         {std::string("default"), std::string("local"), "preferred:" + last,
          "preferred-many:" + last, "preferred-many:" + all, "bind:" + last, "bind:" + all,
          "interleave:" + all, "interleave:" + last}) {
      const Policy policy = ParsePolicy(text).value();

      EXPECT_EQ(EngineNodes(static_cast<int>(index), policy), KernelNodes(policy))
          << text << " on CPU " << worker_cpus_[index];
    }
  }
}

TEST_F(TaskPolicyTest, WeightedStepsAreTheKernels) {
  for (std::vector<int> weights : {std::vector<int>{3, 1, 1}, {2, 5, 3}, {1, 1, 1}}) {
    weights.resize(topology_.nodes().size());
    SetWeights(weights);
    const Policy policy = ParsePolicy("weighted-interleave:" + AllNodes().ToString()).value();

    EXPECT_EQ(EngineNodes(0, policy), KernelNodes(policy));
  }
}

TEST_F(TaskPolicyTest, WeightsThatChangeActFromTheNextNodeOn) {
  std::vector<int> before = {7, 2, 1};
  std::vector<int> after = {2, 3, 1};
  before.resize(topology_.nodes().size());
  after.resize(topology_.nodes().size());
  const Policy policy = ParsePolicy("weighted-interleave:" + AllNodes().ToString()).value();

  SetWeights(before);
  const std::vector<int> engine = EngineNodes(0, policy, 4, [&] { SetWeights(after); });
  SetWeights(before);
  ReadyThread writer([&] { EXPECT_TRUE(WriteHostWeights(after)); });
  const std::vector<int> kernel = KernelNodes(policy, 4, [&] { writer.Run(); });

  EXPECT_EQ(engine, kernel);
  EXPECT_EQ(std::vector<int>(engine.begin(), engine.begin() + 8),
            (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace pipeyard
