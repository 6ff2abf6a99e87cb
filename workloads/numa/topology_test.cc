#include "workloads/numa/topology.h"

#include <gtest/gtest.h>

namespace pipeyard::numa {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Nodes 0 and 1 with CPUs; 2 has only memory, and is nearest to 1; 3 has only CPUs.
Topology FourKindsOfNodes() {
  std::vector<Node> nodes = {
      {0, {0, 1}, kGiB, {10, 21, 31, 12}},
      {1, {2, 3}, kGiB, {21, 10, 14, 20}},
      {2, {}, kGiB, {31, 14, 10, 20}},
      {3, {4}, 0, {12, 20, 20, 10}},
  };
  return *Topology::Make(nodes, {0, 1, 2, 3, 4}, false);
}

TEST(Topology, FallbackBeginsAtHomeAndGoesByDistance) {
  const Topology topology = FourKindsOfNodes();

  EXPECT_EQ(topology.FallbackOrder(0), (std::vector<NodeId>{0, 1, 2}));
  EXPECT_EQ(topology.FallbackOrder(1), (std::vector<NodeId>{1, 2, 0}));
  EXPECT_EQ(topology.FallbackOrder(2), (std::vector<NodeId>{2, 1, 0}));
}

TEST(Topology, FallbackOfAMemorylessNodeBeginsAtTheNearest) {
  EXPECT_EQ(FourKindsOfNodes().FallbackOrder(3), (std::vector<NodeId>{0, 2, 1}));
}

TEST(Topology, AtEqualDistanceANodeWithoutCpusComesFirst) {
  // Distances alike: node 0 costs 2 more (it has CPUs and a lower number), node 2 nothing.
  std::vector<Node> nodes = {
      {0, {0}, kGiB, {10, 20, 20}}, {1, {1}, kGiB, {20, 10, 20}}, {2, {}, kGiB, {20, 20, 10}}};
  const Topology topology = *Topology::Make(nodes, {0, 1}, false);

  EXPECT_EQ(topology.FallbackOrder(1), (std::vector<NodeId>{1, 2, 0}));
}

TEST(Topology, TiesGoToTheNodeThatFewerOthersCameToFirst) {
  // A square. What Linux 6.1 and 6.12 print for it when they boot.
  std::vector<Node> nodes = {{0, {0}, kGiB, {10, 20, 20, 30}},
                             {1, {1}, kGiB, {20, 10, 30, 20}},
                             {2, {2}, kGiB, {20, 30, 10, 20}},
                             {3, {3}, kGiB, {30, 20, 20, 10}}};
  const Topology topology = *Topology::Make(nodes, {0, 1, 2, 3}, false);

  EXPECT_EQ(topology.FallbackOrder(0), (std::vector<NodeId>{0, 1, 2, 3}));
  EXPECT_EQ(topology.FallbackOrder(1), (std::vector<NodeId>{1, 3, 0, 2}));
  EXPECT_EQ(topology.FallbackOrder(2), (std::vector<NodeId>{2, 3, 0, 1}));
  EXPECT_EQ(topology.FallbackOrder(3), (std::vector<NodeId>{3, 2, 1, 0}));
}

TEST(Topology, CpusOfAMemorylessNodeUseTheNearestMemory) {
  const Topology topology = FourKindsOfNodes();

  EXPECT_EQ(topology.NodeOfCpu(4), 3);
  EXPECT_EQ(topology.LocalMemoryNode(4), 0);
  EXPECT_EQ(topology.LocalMemoryNode(2), 1);
  EXPECT_EQ(topology.NodeOfCpu(99), -1);
}

TEST(Topology, MasksAreComparedWithWhatIsOnline) {
  const Topology topology = FourKindsOfNodes();

  EXPECT_TRUE(topology.CheckMemoryMask(NodeMask::Of({0, 2})).ok());
  EXPECT_EQ(topology.CheckMemoryMask(NodeMask::Of({0, 5})).message(),
            "node 5 is not online (online: 0-3)");
  EXPECT_EQ(topology.CheckMemoryMask(NodeMask::Of({3})).message(),
            "node 3 has no memory (with memory: 0-2)");
  EXPECT_FALSE(topology.CheckMemoryMask(NodeMask()).ok());
}

TEST(Topology, RefusesWhatCannotBe) {
  const Node good{0, {0}, kGiB, {10}};
  const std::vector<std::vector<Node>> cases = {
      {},
      {{0, {0}, 0, {10}}},                                    // no memory anywhere
      {{0, {}, kGiB, {10}}},                                  // no CPU anywhere
      {{0, {0}, -1, {10}}},                                   // memory below 0
      {{64, {0}, kGiB, {10}}},                                // beyond the mask
      {{0, {0}, kGiB, {10, 20}}},                             // too many distances
      {{0, {0}, kGiB, {}}},                                   // none
      {{0, {0}, kGiB, {11}}},                                 // far from itself
      {{0, {0}, kGiB, {10, 20}}, {0, {1}, kGiB, {20, 10}}},   // named twice
      {{0, {0}, kGiB, {10, 20}}, {1, {0}, kGiB, {20, 10}}},   // a CPU in two nodes
      {{0, {0}, kGiB, {10, 10}}, {1, {1}, kGiB, {20, 10}}},   // another node as near as itself
      {{0, {0}, kGiB, {10, 256}}, {1, {1}, kGiB, {20, 10}}},  // unreachable
  };
  for (const std::vector<Node>& nodes : cases) {
    EXPECT_EQ(Topology::Make(nodes, {0}, false).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(Topology::Make({good}, {}, false).ok());
  EXPECT_TRUE(Topology::Make({good}, {0}, false).ok());
}

Topology Host() { return *Topology::Make({{0, {0, 2}, kGiB, {10}}}, {0, 2}, false); }

TEST(EmulatedTopology, NumbersVirtualCpusThroughTheNodes) {
  EmulatedTopology description;
  description.nodes = {{2, kGiB}, {0, kGiB}, {3, 0}};
  const Topology topology = *MakeEmulated(description, Host());

  EXPECT_TRUE(topology.is_emulated());
  EXPECT_EQ(topology.Find(2)->cpus, (std::vector<CpuId>{2, 3, 4}));
  EXPECT_EQ(topology.memory_nodes(), NodeMask::Of({0, 1}));
  EXPECT_EQ(topology.Distance(0, 1), 20);
  EXPECT_EQ(topology.Distance(1, 1), 10);
}

TEST(EmulatedTopology, VirtualCpuRunsOnHostCpuModuloOnline) {
  EmulatedTopology description;
  description.nodes = {{2, kGiB}, {2, kGiB}};
  const Topology topology = *MakeEmulated(description, Host());

  EXPECT_EQ(topology.HostCpuOf(0), 0);
  EXPECT_EQ(topology.HostCpuOf(1), 2);
  EXPECT_EQ(topology.HostCpuOf(2), 0);
  EXPECT_EQ(topology.HostCpuOf(3), 2);
  EXPECT_EQ(Host().HostCpuOf(2), 2);
}

TEST(EmulatedTopology, RefusesWhatCannotBe) {
  struct Case {
    const char* why;
    EmulatedTopology description;
  };
  const Case cases[] = {
      {"no node", {}},
      {"negative CPUs", {{{-1, kGiB}}, {}}},
      {"too many CPUs", {{{70000, kGiB}}, {}}},
      {"too few rows", {{{1, kGiB}, {1, kGiB}}, {{10, 20}}}},
      {"a short row", {{{1, kGiB}, {1, kGiB}}, {{10, 20}, {10}}}},
      {"no memory", {{{1, 0}}, {}}},
      {"too many nodes", {std::vector<EmulatedNode>(65, {1, kGiB}), {}}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(MakeEmulated(c.description, Host()).status().code(), StatusCode::kInvalidArgument)
        << c.why;
  }
}

}  // namespace
}  // namespace pipeyard::numa
