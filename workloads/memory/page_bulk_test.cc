// Bulk requests: what they refuse, how they fall short, that they give each node what single steps
// would.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "workloads/memory/page_testing.h"

namespace pipeyard::memory {
namespace {

constexpr BulkOptions kUnaccounted{BulkAlgorithm::kSplitCarry, false};

std::map<int, int> PerNode(const PageFixture& f, std::span<const PageId> pages) {
  std::map<int, int> nodes;
  for (const PageId page : pages) ++nodes[f.allocator->NodeOf(page)];
  return nodes;
}

TEST(PageBulk, ARequestIsFilledFromTheLocalNode) {
  PageFixture f(MakeTopology(2), 400);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages(200);

  ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 200u);
  EXPECT_EQ(PerNode(f, pages), (std::map<int, int>{{0, 200}}));
  EXPECT_EQ(std::set<PageId>(pages.begin(), pages.end()).size(), 200u);
  EXPECT_EQ(f.NumAllocated(), 200u);
  EXPECT_EQ(f.allocator->BulkCallsByNode(), (std::vector<uint64_t>{1, 0}));

  f.allocator->FreeBulk(worker, pages);
  EXPECT_EQ(f.NumAllocated(), 0u);
  EXPECT_EQ(f.Count(PageCounter::kFreed), 200u);
}

TEST(PageBulk, AccountedItGivesOnePageAndSaysWhy) {
  PageFixture f(MakeTopology(1), 100);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages(8);

  EXPECT_EQ(f.allocator->AllocateBulk(worker, pages, {}), 1u);
  EXPECT_EQ(f.Count(PageCounter::kBulkRefusedAccounted), 1u);
  EXPECT_EQ(f.Count(PageCounter::kBulkShort), 1u);
  EXPECT_EQ(f.allocator->controller().used_bytes(), kTestPage);
  EXPECT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 8u);
  EXPECT_EQ(f.allocator->controller().used_bytes(), kTestPage);
}

TEST(PageBulk, WithAccountingOffAnAccountedRequestIsServedInFull) {
  PageAllocatorOptions options;
  options.accounting.is_on = false;
  PageFixture f(MakeTopology(1), 100, 1, options);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages(8);

  EXPECT_EQ(f.allocator->AllocateBulk(worker, pages, {}), 8u);
  EXPECT_EQ(f.Count(PageCounter::kBulkRefusedAccounted), 0u);
}

TEST(PageBulk, AccountedItGivesOnePageUnderEveryPolicy) {
  PageFixture f(MakeTopology(2), 100);
  for (const char* policy : {"weighted-interleave:0=3,1=1", "interleave:0,1", "preferred-many:1"}) {
    for (const BulkAlgorithm algorithm : {BulkAlgorithm::kSplitCarry, BulkAlgorithm::kSingleStep}) {
      PageWorker worker = f.Worker(0, policy);
      std::vector<PageId> pages(8);
      EXPECT_EQ(f.allocator->AllocateBulk(worker, pages, {algorithm, true}), 1u) << policy;
    }
  }
}

TEST(PageBulk, AccountedSingleStepsMoveInterleavingOnByTheOnePageTheyGot) {
  PageFixture f(MakeTopology(2), 100);
  PageWorker worker = f.Worker(0, "weighted-interleave:0=3,1=1");
  std::vector<PageId> pages(8);

  ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, {BulkAlgorithm::kSingleStep, true}), 1u);
  EXPECT_EQ(worker.policy.state, (InterleaveState{.prev = 0, .carry = 2}));
  EXPECT_EQ(f.Count(PageCounter::kBulkCalls), 1u);
}

TEST(PageBulk, OnePageTakesTheSinglePath) {
  PageFixture f(MakeTopology(2), 10);
  PageWorker filler = f.Worker(0, "bind:0");
  f.Nodes(filler, 10);
  PageWorker worker = f.Worker(0);
  PageId page;

  ASSERT_EQ(f.allocator->AllocateBulk(worker, {&page, 1}, kUnaccounted), 1u);
  EXPECT_EQ(f.allocator->NodeOf(page), 1);
  EXPECT_EQ(f.Count(PageCounter::kBulkRefusedSingle), 1u);
}

TEST(PageBulk, BelowTheWatermarkItGivesOnePageFromAnywhere) {
  PageFixture f(MakeTopology(2), 4096);
  const uint32_t low = f.allocator->node(0).watermarks().low;
  ASSERT_GT(low, 0u);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> most(f.allocator->node(0).num_free() - low - 4);
  ASSERT_EQ(f.allocator->AllocateBulk(worker, most, kUnaccounted), most.size());
  std::vector<PageId> pages(8);

  // Four pages above the mark: not enough for eight, so there is one; for three there is.
  EXPECT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 1u);
  EXPECT_EQ(f.Count(PageCounter::kBulkRefusedWatermark), 1u);
  f.allocator->DrainLists(worker);
  EXPECT_EQ(f.allocator->AllocateBulk(worker, {pages.data(), 3}, kUnaccounted), 3u);
  EXPECT_EQ(PerNode(f, {pages.data(), 3}), (std::map<int, int>{{0, 3}}));
}

TEST(PageBulk, ShortCallsOfTheVectorsKeepTheArrayDenseAndTheStateAsPlanned) {
  std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/weighted_interleave.json");
  const nlohmann::json vectors = nlohmann::json::parse(file);
  ASSERT_FALSE(vectors["failure_vectors"].empty());
  for (const nlohmann::json& vector : vectors["failure_vectors"]) {
    for (const auto& [algorithm, name] : std::vector<std::pair<BulkAlgorithm, const char*>>{
             {BulkAlgorithm::kSplitCarry, "upstream_before"},
             {BulkAlgorithm::kFoldedCarry, "fold"}}) {
      const std::string id = vector["id"].get<std::string>() + " " + name;
      const nlohmann::json& expected = vector[name];
      const int num_nodes = static_cast<int>(vector["policy_nodes"].size());
      PageFixture f(MakeTopology(num_nodes), 400);
      PageWorker worker = f.Worker(0);
      // Leaves each node the pages that the vector says, none of them on a list.
      for (int node = 0; node < num_nodes; ++node) {
        const auto keep = vector["free_pages"][std::to_string(node)].get<uint32_t>();
        while (f.allocator->node(static_cast<size_t>(node)).num_free() > keep) {
          ASSERT_NE(f.allocator->AllocateBlock(worker, 0, node,
                                               {.this_node_only = true, .is_accounted = false}),
                    kNoPage);
          f.allocator->DrainLists(worker);
        }
      }
      Policy policy;
      policy.mode = numa::PolicyMode::kWeightedInterleave;
      policy.has_weights = true;
      for (int node = 0; node < num_nodes; ++node) {
        policy.nodes.Add(node);
        policy.weights[node] = vector["weights"][std::to_string(node)].get<uint8_t>();
      }
      worker.policy.SetPolicy(policy);
      worker.policy.state = {vector["start"]["il_prev"].get<uint8_t>(),
                             vector["start"]["il_weight"].get<uint8_t>()};
      std::vector<PageId> pages(vector["nr_pages"].get<size_t>(), kNoPage);
      const uint32_t got = f.allocator->AllocateBulk(worker, pages, {algorithm, false, true});

      EXPECT_EQ(got, expected["total"].get<uint32_t>()) << id;
      std::vector<int> nodes;  // in the order of the array
      for (uint32_t i = 0; i < got; ++i) {
        ASSERT_NE(pages[i], kNoPage) << id;
        nodes.push_back(f.allocator->NodeOf(pages[i]));
      }
      std::vector<int> wanted;
      for (size_t call = 0; call < expected["calls"].size(); ++call) {
        wanted.insert(wanted.end(), expected["got"][call].get<size_t>(),
                      expected["calls"][call][0].get<int>());
      }
      EXPECT_EQ(nodes, wanted) << id;
      EXPECT_EQ(worker.policy.state.prev, expected["end_raw"][0].get<int>()) << id;
      EXPECT_EQ(worker.policy.state.carry, expected["end_raw"][1].get<int>()) << id;
    }
  }
}

TEST(PageBulk, AnEmptyNodesCallGetsOnePageFromElsewhereThroughTheSinglePath) {
  // Vector F02 again, without __GFP_THISNODE: each of the two calls to the empty node 0 becomes a
  // single page of node 1.
  PageFixture f(MakeTopology(2), 50);
  PageWorker filler = f.Worker(0, "bind:0");
  f.Nodes(filler, 50);
  PageWorker worker = f.Worker(0, "weighted-interleave:0=5,1=3");
  worker.policy.state = {0, 4};
  std::vector<PageId> pages(10);

  ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 5u);
  EXPECT_EQ(PerNode(f, {pages.data(), 5}), (std::map<int, int>{{1, 5}}));
  EXPECT_EQ(f.Count(PageCounter::kFallback), 2u);
  EXPECT_EQ(f.Count(PageCounter::kBulkRefusedWatermark), 2u);
  EXPECT_EQ(worker.policy.state, (InterleaveState{0, 2}));
}

TEST(PageBulk, GivesEachNodeWhatSingleStepsWould) {
  const uint64_t seed = TestSeed(20265);
  std::mt19937_64 random(seed);
  for (const char* text : {"weighted-interleave:0=3,1=1", "weighted-interleave:0=2,1=5,2=3",
                           "weighted-interleave:1=7", "weighted-interleave:0=1,2=4"}) {
    for (const BulkAlgorithm algorithm :
         {BulkAlgorithm::kSplitCarry, BulkAlgorithm::kFoldedCarry, BulkAlgorithm::kSingleStep}) {
      PageFixture bulk(MakeTopology(3), 3000);
      PageFixture single(MakeTopology(3), 3000);
      PageWorker bulk_worker = bulk.Worker(0, text);
      PageWorker single_worker = single.Worker(0, text);
      for (int round = 0; round < 30; ++round) {
        std::vector<PageId> pages(1 + random() % 70);
        ASSERT_EQ(bulk.allocator->AllocateBulk(bulk_worker, pages, {algorithm, false}),
                  pages.size());
        std::vector<PageId> steps;
        for (size_t i = 0; i < pages.size(); ++i) {
          steps.push_back(single.allocator->Allocate(single_worker));
        }
        ASSERT_EQ(PerNode(bulk, pages), PerNode(single, steps)) << text << ", seed " << seed;
        const Policy& policy = single_worker.policy.policy;
        ASSERT_EQ(Canonical(policy.nodes, policy.weights, bulk_worker.policy.state),
                  Canonical(policy.nodes, policy.weights, single_worker.policy.state));
        if (algorithm != BulkAlgorithm::kSingleStep) {
          // Grouped by node: at most one change of node per call.
          int num_changes = 0;
          for (size_t i = 1; i < pages.size(); ++i) {
            if (bulk.allocator->NodeOf(pages[i]) != bulk.allocator->NodeOf(pages[i - 1])) {
              ++num_changes;
            }
          }
          EXPECT_LE(num_changes, policy.nodes.Count());
        }
        bulk.allocator->FreeBulk(bulk_worker, pages);
        for (const PageId page : steps) single.allocator->Put(single_worker, page);
      }
      EXPECT_EQ(bulk.NumAllocated(), 0u);
    }
  }
}

TEST(PageBulk, FoldedCarryAsksTheCarriedNodeOnce) {
  for (const auto& [algorithm, calls] : std::vector<std::pair<BulkAlgorithm, uint64_t>>{
           {BulkAlgorithm::kSplitCarry, 2}, {BulkAlgorithm::kFoldedCarry, 1}}) {
    PageFixture f(MakeTopology(2), 100);
    PageWorker worker = f.Worker(0, "weighted-interleave:0=3,1=1");
    worker.policy.state = {0, 1};
    std::vector<PageId> pages(6);

    ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, {algorithm, false}), 6u);
    EXPECT_EQ(PerNode(f, pages), (std::map<int, int>{{0, 4}, {1, 2}}));
    EXPECT_EQ(f.allocator->BulkCallsByNode()[0], calls);
  }
}

TEST(PageBulk, OtherPoliciesAskOneNode) {
  PageFixture f(MakeTopology(3), 100);
  const std::vector<std::pair<const char*, std::map<int, int>>> cases = {
      {"default", {{0, 6}}},          {"local", {{0, 6}}},
      {"preferred:2", {{2, 6}}},      {"bind:1,2", {{1, 6}}},
      {"preferred-many:1", {{1, 6}}}, {"interleave:0,1,2", {{0, 2}, {1, 2}, {2, 2}}},
  };
  for (const auto& [text, nodes] : cases) {
    PageWorker worker = f.Worker(0, text);
    std::vector<PageId> pages(6);
    ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 6u) << text;
    EXPECT_EQ(PerNode(f, pages), nodes) << text;
    f.allocator->FreeBulk(worker, pages);
  }
}

TEST(PageBulk, PreferredManyFillsTheRestFromAnywhere) {
  PageFixture f(MakeTopology(2), 100);
  PageWorker filler = f.Worker(0, "bind:1");
  f.Nodes(filler, 99);
  f.allocator->DrainLists(filler);
  PageWorker worker = f.Worker(0, "preferred-many:1");
  std::vector<PageId> pages(6);

  ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 6u);
  EXPECT_EQ(PerNode(f, pages), (std::map<int, int>{{0, 5}, {1, 1}}));
}

TEST(PageBulk, PagesWithOtherHoldersAreFreedByTheLast) {
  PageFixture f(MakeTopology(1), 100);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages(6);
  ASSERT_EQ(f.allocator->AllocateBulk(worker, pages, kUnaccounted), 6u);
  f.allocator->AddReference(pages[2]);

  f.allocator->FreeBulk(worker, pages);
  EXPECT_EQ(f.NumAllocated(), 1u);
  f.allocator->Put(worker, pages[2]);
  EXPECT_EQ(f.NumAllocated(), 0u);
  EXPECT_EQ(f.allocator->controller().used_bytes(), 0u);
  // Its charge is asked for again by the next holder.
  ASSERT_EQ(f.allocator->Allocate(worker), pages[2]);
  EXPECT_EQ(f.allocator->controller().used_bytes(), kTestPage);
}

TEST(PageBulk, FailingAtTheIthPageLeavesADenseArrayForEveryI) {
  for (uint64_t i = 1; i <= 14; ++i) {
    PageFixture f(MakeTopology(2), 100);
    PageWorker worker = f.Worker(0, "weighted-interleave:0=3,1=1");
    AllocationFailures failures{i, 1};
    f.allocator->InjectFailures(&failures);
    std::vector<PageId> pages(12, kNoPage);
    const uint32_t got = f.allocator->AllocateBulk(worker, pages, kUnaccounted);

    for (uint32_t j = 0; j < got; ++j) EXPECT_NE(pages[j], kNoPage) << i;
    EXPECT_EQ(f.NumAllocated(), got) << i;
    EXPECT_EQ(got == 12, i > 12) << i;
    EXPECT_EQ(worker.policy.state, (InterleaveState{0, 3}));
    f.allocator->FreeBulk(worker, {pages.data(), got});
    EXPECT_EQ(f.NumAllocated(), 0u);
  }
}

}  // namespace
}  // namespace pipeyard::memory
