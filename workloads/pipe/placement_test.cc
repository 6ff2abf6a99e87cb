// Where metadata and data pages go (kernel-mechanisms.md B1, B2, H13): the pipe's side of change 1,
// on two emulated nodes.

#include <errno.h>
#include <gtest/gtest.h>

#include <optional>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

using memory::MetadataPlacement;

struct Wanted {
  MetadataPlacement placement = MetadataPlacement::kAnyNode;
  const char* policy = "default";
  int64_t node1_bytes = 64 << 20;
  memory::SlabForm slab = memory::SlabForm::kSheaves;
  std::optional<memory::AgingOptions> aging = {};
};

// Workers 0 and 1 sit on node 0, worker 2 on node 1; no pipe yet but the fixture's own.
TestEngine::Options TwoNodes(const Wanted& wanted) {
  TestEngine::Options options;
  options.change = [wanted](EngineSetup& setup) {
    setup.config.topology =
        numa::EmulatedTopology{{{2, 64 << 20}, {2, wanted.node1_bytes}}, {{10, 21}, {21, 10}}};
    setup.worker_cpus = {0, 1, 2};
    setup.config.metadata_placement = wanted.placement;
    setup.config.policy = *memory::ParsePolicy(wanted.policy);
    setup.config.slab = wanted.slab;
    setup.pipes.clear();
    setup.extra_pipes = 40;
    setup.extra_slots = 2000;
    setup.aging = wanted.aging;
  };
  return options;
}

// The nodes of info and ring.
struct Nodes {
  numa::NodeId info;
  numa::NodeId ring;
  friend bool operator==(const Nodes&, const Nodes&) = default;
  friend void PrintTo(const Nodes& n, std::ostream* out) {
    *out << "info " << n.info << ", ring " << n.ring;
  }
};

class Placement : public ::testing::Test {
 protected:
  void Start(const Wanted& wanted) { engine_ = std::make_unique<TestEngine>(TwoNodes(wanted)); }
  Engine& engine() { return engine_->engine(); }
  Worker& worker(int index = 0) { return engine_->worker(index); }
  Pipe Create(int by = 0) {
    const CreatedPipe created = engine().CreatePipe(worker(by));
    EXPECT_EQ(created.error, 0);
    return created.pipe;
  }
  Nodes NodesOf(const Pipe& pipe) {
    return {engine().objects().NodeOf(pipe.offset()),
            engine().objects().NodeOf(pipe.info().slots_offset)};
  }
  uint64_t Count(Counter counter) { return engine().Count(counter); }
  uint64_t Named(std::string_view name) {
    for (const memory::CounterValue& counter : engine().Counters()) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  std::unique_ptr<TestEngine> engine_;
};

TEST_F(Placement, ByDefaultMetadataIsOfTheCreatorsNodeWhateverThePolicy) {
  Start({MetadataPlacement::kAnyNode, "preferred:1"});

  EXPECT_EQ(NodesOf(Create(0)), (Nodes{0, 0}));
  EXPECT_EQ(NodesOf(Create(2)), (Nodes{1, 1}));
  EXPECT_EQ(Count(Counter::kPolicyQueries), 0u);
  EXPECT_EQ(Count(Counter::kMetadataLocal), 4u);
  EXPECT_EQ(Count(Counter::kMetadataRemote), 0u);
}

TEST_F(Placement, UnderPolicyNodeThePolicyDecides) {
  struct Case {
    const char* policy;
    numa::NodeId node;
  };
  for (const Case& c : {Case{"default", 0}, Case{"local", 0}, Case{"preferred:1", 1},
                        Case{"bind:1", 1}, Case{"preferred-many:1", 1}, Case{"bind:0,1", 0}}) {
    Start({MetadataPlacement::kPolicyNode, c.policy});

    EXPECT_EQ(NodesOf(Create(0)), (Nodes{c.node, c.node})) << c.policy;
    EXPECT_EQ(Count(Counter::kPolicyQueries), 1u) << c.policy;
    EXPECT_EQ(Count(Counter::kMetadataRemote), c.node == 0 ? 0u : 2u) << c.policy;
  }
}

TEST_F(Placement, UnderStrictPolicyTheSlabAllocatorAsks) {
  Start({MetadataPlacement::kStrictPolicy, "preferred:1"});

  EXPECT_EQ(NodesOf(Create(0)), (Nodes{1, 1}));
  EXPECT_EQ(Count(Counter::kPolicyQueries), 0u) << "not the pipe";
  EXPECT_EQ(Named("slab_strict_policy_queries"), 2u);
}

// Pages and objects add up with what aging holds, and its work is not the pipes'.
TEST_F(Placement, OfAnAgedNodeIsRemoteAndAddsUp) {
  memory::AgingOptions aging;
  aging.node = 1;
  aging.num_free = 100;
  Start({.aging = aging});
  EXPECT_GT(engine().num_aged_slabs(), 2u * 6);
  EXPECT_EQ(Named("object_explicit_node") + Named("new_slabs_this_node"), 0u);

  EXPECT_EQ(NodesOf(Create(0)), (Nodes{1, 1}));
  EXPECT_EQ(Count(Counter::kMetadataRemote), 2u);
  const std::vector<MetadataCount> placement = engine().MetadataPlacement();
  ASSERT_EQ(placement.size(), 1u);
  EXPECT_EQ(placement[0].node, 1);
  EXPECT_EQ(placement[0].live_objects, 2u);
  EXPECT_TRUE(engine().CheckConservation().ok());
}

TEST_F(Placement, H13_CreationAdvancedInterleavingTwice) {
  Start({MetadataPlacement::kPolicyNode, "interleave:0,1"});
  for (int i = 0; i < 10; ++i) {
    const numa::NodeId node = i % 2;
    EXPECT_EQ(NodesOf(Create(0)), (Nodes{node, node})) << i;
    EXPECT_EQ(worker().pages().policy.state.prev, node) << i;
  }
  EXPECT_EQ(Count(Counter::kPolicyQueries), 10u);
}

TEST_F(Placement, H13_ALargeRingQueriedThePolicy) {
  Start({MetadataPlacement::kPolicyNode, "interleave:0,1"});
  Pipe pipe = Create(0);  // on node 0
  struct Case {
    uint32_t slots;
    uint64_t queries;
    numa::NodeId ring;
  };
  // Each step moves interleaving on by one: the query's, or the page allocator's own.
  const Case cases[] = {{128, 2, 1}, {256, 2, 0}, {64, 3, 1}, {512, 3, 0}, {1, 4, 1}};
  for (const Case& c : cases) {
    ASSERT_GT(pipe.Resize(worker(), c.slots * kPage), 0);
    EXPECT_EQ(Count(Counter::kPolicyQueries), c.queries) << c.slots;
    EXPECT_EQ(NodesOf(pipe), (Nodes{0, c.ring})) << c.slots;
    EXPECT_EQ(worker().pages().policy.state.prev, c.ring) << c.slots;
  }
}

TEST_F(Placement, H13_ANamedRemoteNodeAlwaysPassesByTheSheaf) {
  Start({MetadataPlacement::kPolicyNode, "preferred:1"});
  for (int i = 0; i < 20; ++i) Create(0);
  EXPECT_EQ(Named("object_node_mismatches"), 40u);
  EXPECT_EQ(Named("object_fast_allocations"), 0u);

  Start({MetadataPlacement::kAnyNode, "preferred:1"});
  for (int i = 0; i < 20; ++i) Create(0);
  EXPECT_EQ(Named("object_node_mismatches"), 0u);
  EXPECT_GE(Named("object_fast_allocations"), 30u);
}

// Were the node named for a block of pages, the page allocator would fall back to any node and
// leave the nodes that the task is bound to.
TEST_F(Placement, H13_ALargeRingLeftTheBoundNodes) {
  Start({MetadataPlacement::kPolicyNode, "bind:1", 4 << 20});
  Pipe pipe = Create(0);
  std::vector<memory::PageId> taken;
  for (;;) {
    const memory::PageId page = engine().pages().Allocate(worker().pages());
    if (page == memory::kNoPage) break;
    EXPECT_EQ(engine().pages().NodeOf(page), 1);
    taken.push_back(page);
  }
  EXPECT_EQ(pipe.Resize(worker(), 256 * kPage), -ENOMEM);
  for (const memory::PageId page : taken) engine().pages().Put(worker().pages(), page);
  engine().pages().DrainLists(worker().pages());

  EXPECT_GT(pipe.Resize(worker(), 256 * kPage), 0);
  EXPECT_EQ(NodesOf(pipe), (Nodes{1, 1}));
}

TEST_F(Placement, WhoUsesThePipeLaterDoesNotMoveIt) {
  Start({MetadataPlacement::kPolicyNode, "default"});
  Pipe pipe = Create(2);
  pipe.Write(worker(0), "x", 1);

  EXPECT_EQ(NodesOf(pipe), (Nodes{1, 1}));
  const Slot* slot = engine().region().At<Slot>(pipe.info().slots_offset);
  EXPECT_EQ(engine().pages().NodeOf(static_cast<memory::PageId>(slot->page)), 0)
      << "data pages are the writer's";
}

TEST_F(Placement, DataPagesFollowTheWritersPolicyPageByPage) {
  Start({MetadataPlacement::kAnyNode, "interleave:0,1"});
  Pipe pipe = Create(0);
  const std::string data(6 * kPage, 'x');
  pipe.Write(worker(), data.data(), data.size(), kIoNonblocking);

  const Slot* slots = engine().region().At<Slot>(pipe.info().slots_offset);
  for (int i = 0; i + 1 < 6; ++i) {
    EXPECT_NE(engine().pages().NodeOf(static_cast<memory::PageId>(slots[i].page)),
              engine().pages().NodeOf(static_cast<memory::PageId>(slots[i + 1].page)));
  }
}

TEST_F(Placement, TheHistogramCountsInfosAndRingsByNode) {
  Start({MetadataPlacement::kPolicyNode, "interleave:0,1"});
  std::vector<Pipe> pipes;
  for (int i = 0; i < 6; ++i) pipes.push_back(Create(0));
  pipes[0].Resize(worker(), 8 * kPage);  // to node 0: its turn
  pipes[5].CloseReader(worker());
  pipes[5].CloseWriter(worker());
  const std::vector<MetadataCount> nodes = engine().MetadataPlacement();

  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].infos, 3u);
  EXPECT_EQ(nodes[0].rings, 4u);
  EXPECT_EQ(nodes[0].live_objects, 6u);
  EXPECT_EQ(nodes[1].infos, 3u);
  EXPECT_EQ(nodes[1].rings, 3u);
  EXPECT_EQ(nodes[1].live_objects, 4u) << "the last pipe is gone";
}

TEST_F(Placement, BothSlabFormsObeyTheNode) {
  Start({MetadataPlacement::kPolicyNode, "interleave:0,1", 64 << 20, memory::SlabForm::kCpuSlab});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(NodesOf(Create(0)), (Nodes{i % 2, i % 2})) << i;
}

}  // namespace
}  // namespace pipeyard::pipe
