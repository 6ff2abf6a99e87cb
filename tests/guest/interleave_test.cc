// The engine's interleaving against the kernel's own, page by page.
#include "workloads/memory/interleave.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/guest/machine.h"
#include "workloads/memory/weight_table.h"

namespace pipeyard {
namespace {

using memory::WeightTable;
using numa::NodeMask;
using numa::PolicyMode;

// Every set of nodes that has memory.
std::vector<NodeMask> AllMasks(const numa::Topology& topology) {
  std::vector<NodeMask> masks;
  for (uint64_t bits = 1; bits < uint64_t{1} << topology.nodes().size(); ++bits) {
    masks.push_back(NodeMask::FromBits(bits));
  }
  return masks;
}

// The kernel gives a page of a private mapping by its address, in pages; so does the engine, by an
// index.
void ExpectKernelAgrees(PolicyMode mode, NodeMask mask, const WeightTable& table, uint64_t pages) {
  SCOPED_TRACE("nodes " + mask.ToString() + ", " + std::to_string(pages) + " pages");
  Mapping mapping(pages);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(numa::SystemNumaKernel().Bind(mapping.base(), mapping.size_bytes(), mode, mask), 0);

  mapping.Touch();

  const uint64_t first = reinterpret_cast<uintptr_t>(mapping.base()) / HostPageBytes();
  std::vector<int> expected;
  for (uint64_t i = 0; i < pages; ++i) {
    expected.push_back(memory::InterleaveByIndex(mode, mask, table, first + i));
  }
  EXPECT_EQ(mapping.Nodes(), expected);
}

TEST(KernelInterleave, PutsEachPageWhereTheEngineSays) {
  const numa::Topology topology = RealTopology();
  ASSERT_GE(topology.nodes().size(), 2u);
  for (const NodeMask mask : AllMasks(topology)) {
    for (const uint64_t pages : {1, 7, 64, 101}) {
      ExpectKernelAgrees(PolicyMode::kInterleave, mask, WeightTable(), pages);
    }
  }
}

TEST(KernelWeightedInterleave, PutsEachPageWhereTheEngineSays) {
  const numa::Topology topology = RealTopology();
  ASSERT_GE(topology.nodes().size(), 2u);
  for (std::vector<int> weights : {std::vector<int>{3, 1, 1}, {2, 5, 3}, {1, 1, 1}, {1, 255, 7}}) {
    weights.resize(topology.nodes().size());
    ASSERT_TRUE(WriteHostWeights(weights));
    const Result<memory::HostWeights> read =
        memory::ReadHostWeights(numa::HostFiles(), topology.memory_nodes());
    ASSERT_TRUE(read.ok()) << read.status().message();
    for (const NodeMask mask : AllMasks(topology)) {
      for (const uint64_t pages : {1, 7, 64, 101, 600}) {
        ExpectKernelAgrees(PolicyMode::kWeightedInterleave, mask, read->table, pages);
      }
    }
  }
}

// Fixed counts too, so that engine and kernel cannot be wrong together.
TEST(KernelWeightedInterleave, GivesThreeQuartersToANodeOfWeightThree) {
  ASSERT_TRUE(WriteHostWeights({3, 1}));
  Mapping mapping(64);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(numa::SystemNumaKernel().Bind(mapping.base(), mapping.size_bytes(),
                                          PolicyMode::kWeightedInterleave, NodeMask::Of({0, 1})),
            0);

  mapping.Touch();

  const std::vector<int> nodes = mapping.Nodes();
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 0), 48);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), 1), 16);
}

TEST(HostWeights, AreReadAsTheyWereWritten) {
  const numa::Topology topology = RealTopology();
  std::vector<int> weights = {2, 5, 3};
  weights.resize(topology.nodes().size());
  ASSERT_TRUE(WriteHostWeights(weights));

  const Result<memory::HostWeights> read =
      memory::ReadHostWeights(numa::HostFiles(), topology.memory_nodes());

  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->nodes, topology.memory_nodes());
  for (size_t node = 0; node < weights.size(); ++node) {
    EXPECT_EQ(read->table[static_cast<int>(node)], weights[node]) << "node " << node;
  }
}

// The remaining tests are for a kernel before 6.9.
TEST(OldKernel, RefusesWeightedInterleave) {
  Mapping mapping(1);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(numa::SystemNumaKernel().Bind(mapping.base(), mapping.size_bytes(),
                                          PolicyMode::kWeightedInterleave, NodeMask::Of({0, 1})),
            EINVAL);
  const unsigned long nodes = 3;
  errno = 0;
  EXPECT_EQ(::syscall(SYS_set_mempolicy, static_cast<int>(PolicyMode::kWeightedInterleave), &nodes,
                      numa::kMaxNodes + 1),
            -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(OldKernel, HasNoWeights) {
  const Result<memory::HostWeights> read =
      memory::ReadHostWeights(numa::HostFiles(), RealTopology().memory_nodes());

  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->nodes.IsEmpty());
  EXPECT_EQ(read->table, WeightTable());
}

}  // namespace
}  // namespace pipeyard
