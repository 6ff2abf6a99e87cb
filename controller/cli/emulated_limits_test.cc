// The limits of engine.topology, which sweeps are checked against, and those of the engine itself:
// rooms that may not include one another, held together here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proto/settings/structure.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/numa/topology.h"

namespace pipeyard::cli {
namespace {

std::string TopologyText(int num_nodes, int cpus, int64_t memory_bytes) {
  std::string nodes;
  for (int i = 0; i < num_nodes; ++i) {
    nodes += fmt::format("{}{{\"cpus\":\"{}\",\"memory\":\"{}B\"}}", i == 0 ? "" : ",", cpus,
                         memory_bytes);
  }
  return fmt::format("{{\"nodes\":[{}]}}", nodes);
}

Result<numa::Topology> EngineTopology(int num_nodes, int cpus, int64_t memory_bytes) {
  PIPEYARD_ASSIGN_OR_RETURN(
      const numa::Topology host,
      numa::Topology::Make(
          {{.id = 0, .cpus = {0}, .memory_bytes = int64_t{1} << 30, .distances = {10}}}, {0},
          /*is_emulated=*/false));
  return numa::MakeEmulated({.nodes = std::vector<numa::EmulatedNode>(
                                 static_cast<size_t>(num_nodes), {cpus, memory_bytes}),
                             .distances = {}},
                            host);
}

TEST(EmulatedLimits, CpusThatASweepMayNameAreThoseThatTheEngineTakes) {
  const struct {
    int num_nodes;
    int cpus;
    bool is_taken;
  } kCases[] = {{15, 4096, true}, {16, 4096, false}, {64, 1023, true}, {64, 1024, false}};
  for (const auto& c : kCases) {
    EXPECT_EQ(settings::ParseTopology(TopologyText(c.num_nodes, c.cpus, 1 << 20)).ok(), c.is_taken)
        << c.num_nodes << " x " << c.cpus;
    EXPECT_EQ(EngineTopology(c.num_nodes, c.cpus, 1 << 20).ok(), c.is_taken)
        << c.num_nodes << " x " << c.cpus;
  }
}

TEST(EmulatedLimits, NodesThatASweepMayNameAreThoseThatTheEngineTakes) {
  for (const int num_nodes : {numa::kMaxNodes, numa::kMaxNodes + 1}) {
    const bool is_taken = num_nodes <= numa::kMaxNodes;
    EXPECT_EQ(settings::ParseTopology(TopologyText(num_nodes, 1, 1 << 20)).ok(), is_taken);
    EXPECT_EQ(EngineTopology(num_nodes, 1, 1 << 20).ok(), is_taken);
  }
}

TEST(EmulatedLimits, OnePageIsTheLeastMemoryOfANode) {
  for (const int64_t bytes : {4095, 4096}) {
    const Result<numa::Topology> topology = EngineTopology(1, 1, bytes);
    ASSERT_TRUE(topology.ok());
    memory::RegionLayout layout;
    memory::PageAllocatorOptions options;
    options.arena_bytes = 1 << 20;
    options.worker_cpus = {0};

    EXPECT_EQ(settings::ParseTopology(TopologyText(1, 1, bytes)).ok(), bytes == 4096);
    EXPECT_EQ(memory::PageAllocator::AddTo(layout, options, *topology).ok(), bytes == 4096);
  }
}

}  // namespace
}  // namespace pipeyard::cli
