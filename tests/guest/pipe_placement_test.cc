// A pipe's info, ring and pages on real nodes.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/guest/machine.h"
#include "workloads/memory/policy.h"
#include "workloads/pipe/engine.h"

namespace pipeyard {
namespace {

using memory::MetadataPlacement;
using memory::ObjectRef;
using numa::NodeId;
using pipe::Engine;
using pipe::EngineSetup;

class PipePlacementTest : public testing::Test {
 protected:
  static constexpr int kPipes = 12;

  // An engine whose only worker sits on the first CPU, under `policy`.
  std::unique_ptr<Engine> MakeEngine(MetadataPlacement placement, const std::string& policy) {
    EngineSetup setup;
    setup.config.metadata_placement = placement;
    setup.config.policy = memory::ParsePolicy(policy).value();
    setup.worker_cpus = {topology_.cpus().front()};
    setup.extra_pipes = kPipes;
    setup.extra_slots = kPipes * 16;
    Result<std::unique_ptr<Engine>> engine = Engine::Create(setup, topology_);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  // The kernel's answer for the page that holds `address`.
  static NodeId KernelsNodeOf(void* address) {
    const uint64_t at = reinterpret_cast<uintptr_t>(address) / HostPageBytes() * HostPageBytes();
    void* page = reinterpret_cast<void*>(at);
    int node = -1;
    EXPECT_EQ(numa::SystemNumaKernel().QueryNodes({&page, 1}, {&node, 1}), 0);
    return node;
  }
  // Live infos and rings by the node where the kernel finds them; what the engine says is compared.
  static std::map<NodeId, int> MetadataByNode(Engine& engine) {
    std::map<NodeId, int> counts;
    const memory::ObjectCensus census = engine.objects().TakeCensus().value();
    for (const ObjectRef object : census.live) {
      const NodeId node = KernelsNodeOf(engine.objects().Address(object));
      EXPECT_EQ(engine.objects().NodeOf(object), node);
      counts[node] += 1;
    }
    return counts;
  }

  const numa::Topology topology_ = RealTopology();
  const NodeId home_ = topology_.LocalMemoryNode(topology_.cpus().front());
  const std::vector<NodeId> nodes_ = topology_.memory_nodes().Nodes();
};

TEST_F(PipePlacementTest, MetadataLiesAtHomeByDefault) {
  const auto engine = MakeEngine(MetadataPlacement::kAnyNode, "default");
  ASSERT_NE(engine, nullptr);
  for (int i = 0; i < kPipes; ++i) ASSERT_TRUE(engine->CreatePipe(engine->worker(0)).ok());

  EXPECT_EQ(MetadataByNode(*engine), (std::map<NodeId, int>{{home_, 2 * kPipes}}));
}

TEST_F(PipePlacementTest, MetadataFollowsThePolicyWhereItIsAsked) {
  for (const auto placement : {MetadataPlacement::kPolicyNode, MetadataPlacement::kStrictPolicy}) {
    const auto engine = MakeEngine(placement, "preferred:" + std::to_string(nodes_.back()));
    ASSERT_NE(engine, nullptr);
    for (int i = 0; i < kPipes; ++i) ASSERT_TRUE(engine->CreatePipe(engine->worker(0)).ok());

    EXPECT_EQ(MetadataByNode(*engine), (std::map<NodeId, int>{{nodes_.back(), 2 * kPipes}}));
  }
}

TEST_F(PipePlacementTest, InterleaveGivesEachPipeOneNodeForInfoAndRing) {
  const auto engine = MakeEngine(MetadataPlacement::kPolicyNode,
                                 "interleave:" + topology_.memory_nodes().ToString());
  ASSERT_NE(engine, nullptr);
  for (int i = 0; i < kPipes; ++i) ASSERT_TRUE(engine->CreatePipe(engine->worker(0)).ok());

  const std::map<NodeId, int> found = MetadataByNode(*engine);
  EXPECT_EQ(found.size(), nodes_.size());
  for (const pipe::MetadataCount& count : engine->MetadataPlacement()) {
    EXPECT_EQ(count.infos, count.rings) << "node " << count.node;
    EXPECT_EQ(found.at(count.node), static_cast<int>(count.infos + count.rings));
  }
}

TEST_F(PipePlacementTest, PagesFollowThePolicyAndAreProved) {
  const auto engine =
      MakeEngine(MetadataPlacement::kAnyNode, "bind:" + std::to_string(nodes_.back()));
  ASSERT_NE(engine, nullptr);
  pipe::CreatedPipe created = engine->CreatePipe(engine->worker(0));
  ASSERT_TRUE(created.ok());
  const std::vector<char> data(10 * HostPageBytes(), 'x');
  created.pipe.Write(engine->worker(0), data.data(), data.size());

  const Result<pipe::PlacementProof> proof = engine->ProvePlacement();

  ASSERT_TRUE(proof.ok()) << proof.status().message();
  EXPECT_FALSE(proof->is_emulated);
  EXPECT_EQ(proof->misplaced, 0);
  int64_t on_last = 0;
  for (const numa::PlacementCount& count : proof->nodes) {
    if (count.expected == nodes_.back()) on_last = count.pages_on.at(count.expected);
  }
  EXPECT_GE(on_last, 10);
}

}  // namespace
}  // namespace pipeyard
