// The engine's memory policies on real nodes: its pages lie where the policy says, and a fault goes
// where the kernel's own goes.
#include "workloads/memory/policy.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/guest/real_arenas.h"
#include "workloads/memory/weight_table.h"

namespace pipeyard {
namespace {

using memory::ParsePolicy;
using memory::Policy;

class RealPolicyTest : public RealArenasTest {
 protected:
  // Where the kernel has the pages that worker 0 gets under `policy`, in their order.
  std::vector<int> NodesUnder(const std::string& policy, size_t pages) {
    PageWorker worker = pages_->MakeWorker(0);
    worker.policy.SetPolicy(ParsePolicy(policy).value());
    std::vector<int> nodes;
    for (size_t i = 0; i < pages; ++i) {
      const PageId page = pages_->Allocate(worker);
      if (page == kNoPage) break;
      nodes.push_back(KernelsNodeOf(page));
      taken_.push_back(page);
    }
    return nodes;
  }
  void TearDown() override {
    PageWorker worker = pages_->MakeWorker(0);
    for (const PageId page : taken_) pages_->Put(worker, page);
  }

  std::string All() const { return AllNodes().ToString(); }
  NodeId last() const { return AllNodes().Nodes().back(); }

  std::vector<PageId> taken_;
};

std::map<int, int> CountByNode(const std::vector<int>& nodes) {
  std::map<int, int> counts;
  for (const int node : nodes) counts[node] += 1;
  return counts;
}

// The nodes in the order in which they first appear in a row.
std::vector<NodeId> Runs(const std::vector<int>& nodes) {
  std::vector<NodeId> runs;
  for (const int node : nodes) {
    if (runs.empty() || runs.back() != node) runs.push_back(node);
  }
  return runs;
}

TEST_F(RealPolicyTest, PreferredGoesOnInTheOrderOfItsNode) {
  const std::vector<int> nodes = NodesUnder("preferred:" + std::to_string(last()), SIZE_MAX);

  EXPECT_EQ(Runs(nodes), topology_.FallbackOrder(last()));
}

TEST_F(RealPolicyTest, PreferredManyFirstUsesUpItsNodes) {
  const std::vector<int> nodes = NodesUnder("preferred-many:" + std::to_string(last()), SIZE_MAX);

  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(nodes.front(), last());
  EXPECT_EQ(CountByNode(nodes).size(), static_cast<size_t>(AllNodes().Count()));
}

TEST_F(RealPolicyTest, BindFailsRatherThanLeaveItsNodes) {
  const std::vector<int> nodes = NodesUnder("bind:" + std::to_string(last()), SIZE_MAX);

  EXPECT_EQ(Runs(nodes), std::vector<NodeId>{last()});
}

TEST_F(RealPolicyTest, InterleaveTakesOneNodeAfterTheOther) {
  const std::vector<NodeId> all = AllNodes().Nodes();
  std::vector<int> expected;
  for (size_t i = 0; i < 10; ++i) expected.push_back(all[i % all.size()]);

  EXPECT_EQ(NodesUnder("interleave:" + All(), 10), expected);
}

TEST_F(RealPolicyTest, WeightedInterleaveTakesAsManyAsWritten) {
  EXPECT_EQ(NodesUnder("weighted-interleave:0=3,1=1", 10),
            (std::vector<int>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0}));
}

TEST_F(RealPolicyTest, WeightedInterleaveObeysTheHostsWeights) {
  std::vector<int> weights = {2, 5, 3};
  weights.resize(topology_.nodes().size());
  ASSERT_TRUE(WriteHostWeights(weights));
  PageAllocatorOptions options;
  options.weights = memory::ReadHostWeights(numa::HostFiles(), AllNodes()).value().table;
  Create(options);
  const int round = 2 + 5 + (weights.size() > 2 ? 3 : 0);

  std::map<int, int> expected = {{0, 8}, {1, 20}};
  if (weights.size() > 2) expected[2] = 12;
  EXPECT_EQ(CountByNode(NodesUnder("weighted-interleave:" + All(), 4 * round)), expected);
}

TEST_F(RealPolicyTest, BulkGivesEachNodeItsShare) {
  PageAllocatorOptions options;
  options.accounting.is_on = false;
  Create(options);
  for (const auto algorithm :
       {memory::BulkAlgorithm::kSplitCarry, memory::BulkAlgorithm::kSingleStep,
        memory::BulkAlgorithm::kFoldedCarry}) {
    PageWorker worker = pages_->MakeWorker(0);
    worker.policy.SetPolicy(ParsePolicy("weighted-interleave:0=3,1=1").value());
    std::vector<PageId> pages(64);

    ASSERT_EQ(pages_->AllocateBulk(worker, pages, {.algorithm = algorithm}), 64u);

    std::vector<int> nodes;
    for (const PageId page : pages) nodes.push_back(KernelsNodeOf(page));
    EXPECT_EQ(CountByNode(nodes), (std::map<int, int>{{0, 48}, {1, 16}}));
    pages_->FreeBulk(worker, pages);
  }
}

TEST_F(RealPolicyTest, TheCpusetFiltersEveryPolicy) {
  pages_->SetCpuset(NodeMask::Of({last()}));
  for (const std::string policy : {"default", "preferred:0", "interleave:0,1"}) {
    const std::vector<int> nodes = NodesUnder(policy, 6);
    EXPECT_EQ(CountByNode(nodes), (std::map<int, int>{{last(), 6}})) << policy;
  }
}

// A mapping under `policy`, touched on the CPU of worker `index`; and the engine's pages for the
// same faults.
TEST_F(RealPolicyTest, AFaultGoesWhereTheKernelsGoes) {
  constexpr uint64_t kPages = 12;
  std::vector<std::string> policies = {
      "preferred:" + std::to_string(last()),
      "bind:" + std::to_string(last()),
      "bind:" + All(),
      "interleave:" + All(),
      "interleave:" + std::to_string(last()),
  };
  if (AllNodes().Count() > 2) {
    policies.insert(policies.end(), {"bind:1-2", "interleave:0,2", "preferred-many:1-2"});
  }
  for (size_t index = 0; index < worker_cpus_.size(); ++index) {
    ASSERT_TRUE(RunOn(worker_cpus_[index]));
    PageWorker worker = pages_->MakeWorker(static_cast<int>(index));
    for (const std::string& text : policies) {
      const Policy policy = ParsePolicy(text).value();
      Mapping mapping(kPages);
      ASSERT_EQ(kernel_.Bind(mapping.base(), mapping.size_bytes(), policy.mode, policy.nodes), 0);
      mapping.Touch();

      const uint64_t first = reinterpret_cast<uintptr_t>(mapping.base()) / HostPageBytes();
      std::vector<int> nodes;
      for (uint64_t i = 0; i < kPages; ++i) {
        taken_.push_back(pages_->AllocateForFault(worker, policy, first + i));
        ASSERT_NE(taken_.back(), kNoPage);
        nodes.push_back(KernelsNodeOf(taken_.back()));
      }

      EXPECT_EQ(nodes, mapping.Nodes()) << text << " on CPU " << worker_cpus_[index];
    }
  }
}

}  // namespace
}  // namespace pipeyard
