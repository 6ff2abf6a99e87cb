// Every policy mode against a small model of kernel-mechanisms.md B4 that shares no code with the
// engine: it knows distances, free pages of each node, and one page at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "workloads/memory/page_testing.h"

namespace pipeyard::memory {
namespace {

using numa::PolicyMode;

class Model {
 public:
  Model(const std::vector<TestNode>& nodes, uint64_t pages) : nodes_(nodes) {
    for (const TestNode& node : nodes) free.push_back(node.has_memory ? pages : 0);
  }

  // Nodes with memory, nearest to `from` first.
  std::vector<int> Order(int from) const {
    std::vector<int> order;
    for (int i = 0; i < size(); ++i) {
      if (At(i).has_memory) order.push_back(i);
    }
    const auto cost = [&](int to) {
      if (to == from) return 0;
      return 10 + 10 * std::abs(from - to) + (to < from ? 1 : 0) + (At(to).has_cpu ? 1 : 0);
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost(a) < cost(b); });
    return order;
  }
  int LocalOf(int cpu) const { return Order(cpu).front(); }

  // The node that alloc_page() takes from; -1: none. Moves the task's state.
  int Allocate(int local) {
    const std::set<int> bound = Allowed(policy_nodes);
    switch (mode) {
      case PolicyMode::kPreferred:
        return Take(*policy_nodes.begin(), cpuset);
      case PolicyMode::kPreferredMany: {
        const int node = Take(local, bound);
        return node >= 0 ? node : Take(local, cpuset);
      }
      case PolicyMode::kBind:
        return Take(local, bound);
      case PolicyMode::kInterleave:
        last = Next(bound);
        return Take(last, cpuset);
      case PolicyMode::kWeightedInterleave:
        if (left == 0 || bound.count(last) == 0) {
          last = Next(bound);
          left = weights[static_cast<size_t>(last)];
        }
        --left;
        return Take(last, cpuset);
      default:
        return Take(local, cpuset);
    }
  }
  // The same for a fault: interleaving goes by the index.
  int Fault(int local, uint64_t index) {
    std::vector<int> turns;
    for (const int node : policy_nodes) {
      const int times = mode == PolicyMode::kInterleave ? 1 : weights[static_cast<size_t>(node)];
      for (int i = 0; i < times; ++i) turns.push_back(node);
    }
    if (mode == PolicyMode::kInterleave || mode == PolicyMode::kWeightedInterleave) {
      return Take(turns[index % turns.size()], cpuset);
    }
    return Allocate(local);
  }

  std::vector<uint64_t> free;
  std::set<int> cpuset;
  PolicyMode mode = PolicyMode::kDefault;
  std::set<int> policy_nodes;
  std::array<int, 4> weights = {1, 1, 1, 1};
  int last = 63;
  int left = 0;

 private:
  int size() const { return static_cast<int>(nodes_.size()); }
  const TestNode& At(int i) const { return nodes_[static_cast<size_t>(i)]; }
  std::set<int> Allowed(const std::set<int>& wanted) const {
    std::set<int> both;
    std::set_intersection(wanted.begin(), wanted.end(), cpuset.begin(), cpuset.end(),
                          std::inserter(both, both.end()));
    return both.empty() ? cpuset : both;
  }
  int Next(const std::set<int>& bound) const {
    const auto next = bound.upper_bound(last);
    return next != bound.end() ? *next : *bound.begin();
  }
  int Take(int from, const std::set<int>& allowed) {
    for (const int node : Order(from)) {
      if (allowed.count(node) == 0 || free[static_cast<size_t>(node)] == 0) continue;
      --free[static_cast<size_t>(node)];
      return node;
    }
    return -1;
  }

  const std::vector<TestNode> nodes_;
};

struct Machine {
  const char* name;
  std::vector<TestNode> nodes;
};
const Machine kMachines[] = {
    {"one", {{true, true}}},
    {"two", {{true, true}, {true, true}}},
    {"three", {{true, true}, {true, true}, {true, true}}},
    {"four", {{true, true}, {true, true}, {true, true}, {true, true}}},
    {"memoryless first", {{false, true}, {true, true}}},
    {"memoryless middle", {{true, true}, {false, true}, {true, true}}},
    {"expander last", {{true, true}, {true, false}}},
    {"expander first", {{true, false}, {true, true}, {false, true}, {true, false}}},
};
constexpr PolicyMode kModes[] = {
    PolicyMode::kDefault,           PolicyMode::kLocal, PolicyMode::kPreferred,
    PolicyMode::kPreferredMany,     PolicyMode::kBind,  PolicyMode::kInterleave,
    PolicyMode::kWeightedInterleave};

std::set<int> RandomNodes(std::mt19937_64& random, const std::vector<int>& from, bool just_one) {
  std::set<int> nodes;
  while (nodes.empty()) {
    for (const int node : from) {
      if (random() % 2 == 0) nodes.insert(node);
    }
  }
  if (just_one) nodes.erase(std::next(nodes.begin()), nodes.end());
  return nodes;
}

numa::NodeMask MaskOf(const std::set<int>& nodes) {
  numa::NodeMask mask;
  for (const int node : nodes) mask.Add(node);
  return mask;
}

// Sets a random policy on both sides.
Policy RandomPolicy(std::mt19937_64& random, PolicyMode mode, const std::vector<int>& memory,
                    Model& model) {
  Policy policy;
  policy.mode = model.mode = mode;
  model.policy_nodes.clear();
  if (mode != PolicyMode::kDefault && mode != PolicyMode::kLocal) {
    model.policy_nodes = RandomNodes(random, memory, mode == PolicyMode::kPreferred);
  }
  policy.nodes = MaskOf(model.policy_nodes);
  policy.has_weights = random() % 2 == 0;
  for (int node = 0; node < 4; ++node) {
    const auto weight = static_cast<uint8_t>(policy.has_weights ? 1 + random() % 5 : 2 + node);
    policy.weights[node] = weight;
    model.weights[static_cast<size_t>(node)] = weight;
  }
  model.last = 63;
  model.left = 0;
  return policy;
}

TEST(PagePolicy, EveryModeTakesTheNodeThatTheModelTakes) {
  const uint64_t seed = TestSeed(20263);
  std::mt19937_64 random(seed);
  for (const Machine& machine : kMachines) {
    const numa::Topology topology = MakeTopology(machine.nodes);
    for (const PolicyMode mode : kModes) {
      for (int round = 0; round < 12; ++round) {
        PageAllocatorOptions options;
        for (int node = 0; node < 4; ++node) options.weights[node] = static_cast<uint8_t>(2 + node);
        PageFixture f(topology, 20, 1, options);
        const numa::CpuId cpu = topology.cpus().front();
        Model model(machine.nodes, 20);
        const std::vector<int> memory = model.Order(cpu);
        model.cpuset.insert(memory.begin(), memory.end());
        PageWorker worker = f.allocator->MakeWorker(0);
        worker.policy.SetPolicy(RandomPolicy(random, mode, memory, model));
        std::vector<PageId> held;
        for (int step = 0; step < 200; ++step) {
          const uint64_t dice = random() % 100;
          const std::string where = std::string(machine.name) + ", " +
                                    FormatPolicy(worker.policy.policy) + ", step " +
                                    std::to_string(step) + ", seed " + std::to_string(seed);
          if (dice < 70) {
            const PageId page = f.allocator->Allocate(worker);
            ASSERT_EQ(page == kNoPage ? -1 : f.allocator->NodeOf(page),
                      model.Allocate(model.LocalOf(cpu)))
                << where;
            if (page != kNoPage) held.push_back(page);
          } else if (dice < 96) {
            if (held.empty()) continue;
            std::swap(held[random() % held.size()], held.back());
            ++model.free[static_cast<size_t>(f.allocator->NodeOf(held.back()))];
            f.allocator->Put(worker, held.back());
            held.pop_back();
          } else if (dice < 98) {
            model.cpuset = RandomNodes(random, memory, false);
            f.allocator->SetCpuset(MaskOf(model.cpuset));
          } else {
            worker.policy.SetPolicy(RandomPolicy(random, mode, memory, model));
          }
        }
        ASSERT_EQ(f.NumAllocated(), held.size());
      }
    }
  }
}

TEST(PagePolicy, FaultsInterleaveByIndexAndLeaveTheTaskAlone) {
  const uint64_t seed = TestSeed(20264);
  std::mt19937_64 random(seed);
  for (const Machine& machine : kMachines) {
    const numa::Topology topology = MakeTopology(machine.nodes);
    const numa::CpuId cpu = topology.cpus().front();
    for (const PolicyMode mode : kModes) {
      PageAllocatorOptions options;
      for (int node = 0; node < 4; ++node) options.weights[node] = static_cast<uint8_t>(2 + node);
      PageFixture f(topology, 30, 1, options);
      Model model(machine.nodes, 30);
      const std::vector<int> memory = model.Order(cpu);
      model.cpuset.insert(memory.begin(), memory.end());
      PageWorker worker = f.Worker(0, "interleave:0-3");
      const Policy policy = RandomPolicy(random, mode, memory, model);
      const InterleaveState before = worker.policy.state;
      for (int step = 0; step < 60; ++step) {
        const uint64_t index = random() % 1000;
        const PageId page = f.allocator->AllocateForFault(worker, policy, index);
        ASSERT_EQ(page == kNoPage ? -1 : f.allocator->NodeOf(page),
                  model.Fault(model.LocalOf(cpu), index))
            << machine.name << ", " << FormatPolicy(policy) << ", seed " << seed;
      }
      EXPECT_EQ(worker.policy.state, before);
    }
  }
}

TEST(PagePolicy, BindEndsWithFailureWhileOtherNodesHavePages) {
  PageFixture f(MakeTopology(2), 3);
  PageWorker worker = f.Worker(0, "bind:1");

  EXPECT_EQ(f.Nodes(worker, 4), (std::vector<int>{1, 1, 1, -1}));
  worker.policy.SetPolicy(Policy{});
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{0}));
}

TEST(PagePolicy, PreferredManyUsesItsNodesBeforeAnyOther) {
  PageFixture f(MakeTopology(3), 2);
  PageWorker worker = f.Worker(0, "preferred-many:1,2");

  EXPECT_EQ(f.Nodes(worker, 7), (std::vector<int>{1, 1, 2, 2, 0, 0, -1}));
}

TEST(PagePolicy, ABlockOfThisNodeOnlyStaysThereUnderPreferredMany) {
  PageFixture f(MakeTopology(2), 100);
  PageWorker worker = f.Worker(0, "preferred-many:0");
  const AllocationFlags here{.this_node_only = true};
  std::set<int> nodes;
  for (PageId page; (page = f.allocator->AllocateBlock(worker, 0, numa::kNoNode, here)) != kNoPage;)
    nodes.insert(f.allocator->NodeOf(page));

  EXPECT_EQ(nodes, std::set<int>{0});
  EXPECT_EQ(f.allocator->node(1).num_free(), f.allocator->node(1).num_pages());
}

TEST(PagePolicy, TheFirstPassOfPreferredManyReclaimsNothing) {
  struct Counting final : Shrinker {
    uint64_t Shrink(PageWorker&, uint64_t) override {
      ++calls;
      return 0;
    }
    int calls = 0;
  } shrinker;
  PageFixture f(MakeTopology(2), 2);
  f.allocator->RegisterShrinker(&shrinker);
  PageWorker worker = f.Worker(0, "preferred-many:1");

  EXPECT_EQ(f.Nodes(worker, 4), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(shrinker.calls, 0);
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{-1}));
  EXPECT_GT(shrinker.calls, 0);
}

TEST(PagePolicy, AnInterleavedPageOfAFullNodeComesFromAnotherAndTheTurnIsSpent) {
  PageFixture f(MakeTopology(2), 3);
  PageWorker filler = f.Worker(0, "bind:1");
  f.Nodes(filler, 3);
  PageWorker worker = f.Worker(0, "interleave:0,1");

  EXPECT_EQ(f.Nodes(worker, 3), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(worker.policy.state.prev, 0);
  EXPECT_EQ(f.Count(PageCounter::kFallback), 1u);
}

TEST(PagePolicy, TheCpusetFiltersEveryKindOfAllocation) {
  PageFixture f(MakeTopology(2), 40);
  f.allocator->SetCpuset(numa::NodeMask::Of({1}));
  PageWorker worker = f.Worker(0, "bind:0");
  std::vector<PageId> bulk(4);

  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{1}));
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker, {0, numa::NodeMask::Of({0, 1})})), 1);
  EXPECT_EQ(f.allocator->Allocate(worker, {0, numa::NodeMask::Of({0})}), kNoPage);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateBlock(worker, 2, 0, {})), 1);
  EXPECT_EQ(f.allocator->AllocateBlock(worker, 2, 0, {.this_node_only = true}), kNoPage);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateForFault(worker, *ParsePolicy("bind:0"), 7)),
            1);
  ASSERT_EQ(f.allocator->AllocateBulk(worker, bulk, {BulkAlgorithm::kSplitCarry, false}), 4u);
  for (const PageId page : bulk) EXPECT_EQ(f.allocator->NodeOf(page), 1);

  f.allocator->SetCpuset(numa::NodeMask::Of({0, 1}));
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{0}));
}

TEST(PagePolicy, AnExplicitNodeOfABlockIsAPreferenceOutsideThePolicy) {
  PageFixture f(MakeTopology(2), 16);
  PageWorker worker = f.Worker(0, "bind:0");

  EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateBlock(worker, 3, 1, {})), 1);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateBlock(worker, 3, 1, {})), 1);
  EXPECT_EQ(f.allocator->AllocateBlock(worker, 3, 1, {.this_node_only = true}), kNoPage);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateBlock(worker, 3, 1, {})), 0);
}

TEST(PagePolicy, ABlockUnderInterleaveMovesTheTaskOnByOne) {
  PageFixture f(MakeTopology(2), 64);
  PageWorker worker = f.Worker(0, "weighted-interleave:0=2,1=1");
  std::vector<int> nodes;
  for (int i = 0; i < 4; ++i) {
    const PageId block = f.allocator->AllocateBlock(worker, 2, numa::kNoNode, {});
    nodes.push_back(f.allocator->NodeOf(block));
    EXPECT_EQ(block % 4, 0u);
  }

  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 1, 0}));
}

TEST(PagePolicy, AChangedWeightActsFromTheNextNodeOn) {
  PageFixture f(MakeTopology(2), 40);
  WeightTable table;
  table[0] = 3;
  f.allocator->SetWeights(table);
  PageWorker worker = f.Worker(0, "weighted-interleave:0,1");
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{0}));

  table[0] = 1;
  table[1] = 2;
  f.allocator->SetWeights(table);
  EXPECT_EQ(f.Nodes(worker, 6), (std::vector<int>{0, 0, 1, 1, 0, 1}));
}

}  // namespace
}  // namespace pipeyard::memory
