#include "workloads/load/inert_switches.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "proto/settings/policy_text.h"
#include "workloads/load/engine_settings.h"

namespace pipeyard::load {
namespace {

using settings::Value;

constexpr int64_t kPage = 4096;

numa::Topology Nodes(int count, bool is_emulated = false) {
  std::vector<numa::Node> nodes;
  std::vector<numa::CpuId> cpus;
  for (int i = 0; i < count; ++i) {
    std::vector<int> distances(static_cast<size_t>(count), 20);
    distances[static_cast<size_t>(i)] = 10;
    nodes.push_back({i, {2 * i, 2 * i + 1}, int64_t{1} << 30, distances});
    cpus.insert(cpus.end(), {2 * i, 2 * i + 1});
  }
  return *numa::Topology::Make(nodes, cpus, is_emulated);
}

settings::Variant VariantOf(const std::string& workload,
                            const std::map<std::string, Value>& values) {
  Result<settings::Variant> variant = settings::MakeVariant(workload, "engine", values);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return std::move(*variant);
}

Value Word(const char* word) { return std::string(word); }

TEST(InertSwitches, AreThoseThatCannotActOnTheseNodesUnderThisWorkload) {
  const numa::Topology one = Nodes(1);
  const numa::Topology two = Nodes(2);
  const numa::Topology emulated_one = Nodes(1, true);
  const numa::Topology emulated_two = Nodes(2, true);
  const std::map<std::string, Value> weighted_bulk = {
      {"engine.policy", Word("weighted-interleave:0=3,1=1")},
      {"engine.page_cache", Word("prealloc-v1")},
      {"engine.accounting", Word("off")}};
  const auto with = [](std::map<std::string, Value> values, const std::string& name,
                       const Value& value) {
    values[name] = value;
    return values;
  };
  using Names = std::vector<std::string>;
  struct Case {
    std::string what;
    std::string workload;
    const numa::Topology& topology;
    std::map<std::string, Value> values;
    Names inert;
  };
  const Case cases[] = {
      {"defaults", "transfer", one, {}, {}},
      // Change 1.
      {"one node",
       "transfer",
       one,
       {{"engine.metadata_placement", Word("policy-node")}},
       {"engine.metadata_placement"}},
      {"strict, one node",
       "messaging",
       one,
       {{"engine.metadata_placement", Word("strict-policy")}},
       {"engine.metadata_placement"}},
      {"two nodes", "messaging", two, {{"engine.metadata_placement", Word("policy-node")}}, {}},
      {"two emulated nodes",
       "messaging",
       emulated_two,
       {{"engine.metadata_placement", Word("policy-node")}},
       {}},
      // Change 2.
      {"prealloc, long", "transfer", one, {{"engine.page_cache", Word("prealloc")}}, {}},
      {"prealloc, a page",
       "transfer",
       one,
       {{"engine.page_cache", Word("prealloc")}, {"message_bytes", kPage}},
       {"engine.page_cache"}},
      {"prealloc, above a page",
       "transfer",
       one,
       {{"engine.page_cache", Word("prealloc")}, {"message_bytes", kPage + 1}},
       {}},
      {"v1, a page",
       "transfer",
       one,
       {{"engine.page_cache", Word("prealloc-v1")}, {"message_bytes", kPage}},
       {}},
      {"v1, below a page",
       "transfer",
       one,
       {{"engine.page_cache", Word("prealloc-v1")}, {"message_bytes", kPage - 1}},
       {"engine.page_cache"}},
      {"prealloc, short messages",
       "messaging",
       one,
       {{"engine.page_cache", Word("prealloc")}},
       {"engine.page_cache"}},
      {"one-page", "messaging", one, {{"engine.page_cache", Word("one-page")}}, {}},
      {"pool", "messaging", one, {{"engine.page_cache", Word("pool")}}, {}},
      // Change 3.
      {"no bulk",
       "transfer",
       two,
       {{"engine.interleave_bulk", Word("folded-carry")}},
       {"engine.interleave_bulk"}},
      {"bulk under weights",
       "transfer",
       two,
       with(weighted_bulk, "engine.interleave_bulk", Word("folded-carry")),
       {}},
      {"bulk accounted",
       "transfer",
       two,
       with(with(weighted_bulk, "engine.interleave_bulk", Word("folded-carry")),
            "engine.accounting", Word("on")),
       {"engine.interleave_bulk"}},
      {"bulk without weights",
       "transfer",
       two,
       with(with(weighted_bulk, "engine.interleave_bulk", Word("single-step")), "engine.policy",
            Word("interleave:0,1")),
       {"engine.interleave_bulk"}},
      {"bulk, weights of one node",
       "transfer",
       two,
       with(with(weighted_bulk, "engine.interleave_bulk", Word("single-step")), "engine.policy",
            Word("weighted-interleave:1=4")),
       {"engine.interleave_bulk"}},
      {"bulk, messages below a page",
       "messaging",
       two,
       with(weighted_bulk, "engine.interleave_bulk", Word("folded-carry")),
       {"engine.interleave_bulk", "engine.page_cache"}},
      // Change 4.
      {"fastpath", "transfer", one, {{"engine.fastpath", Word("on")}}, {}},
      {"fastpath, two nodes",
       "transfer",
       two,
       {{"engine.fastpath", Word("on")}},
       {"engine.fastpath"}},
      {"fastpath, one emulated node",
       "transfer",
       emulated_one,
       {{"engine.fastpath", Word("on")}},
       {"engine.fastpath"}},
      {"page path", "transfer", one, {{"engine.fastpath_page", Word("on")}}, {}},
      {"two that command the same",
       "transfer",
       one,
       {{"engine.fastpath", Word("on")}, {"engine.fastpath_page", Word("on")}},
       {"engine.fastpath"}},
      {"page path off",
       "transfer",
       one,
       {{"engine.fastpath", Word("on")}, {"engine.fastpath_page", Word("off")}},
       {"engine.fastpath"}},
      {"fault path",
       "transfer",
       one,
       {{"engine.fastpath_fault", Word("on")}},
       {"engine.fastpath_fault"}},
      {"bulk path, nothing bulk",
       "transfer",
       one,
       {{"engine.fastpath_bulk", Word("on")}},
       {"engine.fastpath_bulk"}},
      {"bulk path",
       "transfer",
       one,
       {{"engine.fastpath_bulk", Word("on")},
        {"engine.page_cache", Word("prealloc-v1")},
        {"engine.accounting", Word("off")}},
       {}},
      {"slab path, pipes made before",
       "messaging",
       one,
       {{"engine.fastpath_slab", Word("on")}},
       {"engine.fastpath_slab"}},
      // Memory in place of pipes.
      {"fault, its path", "fault", one, {{"engine.fastpath_fault", Word("on")}}, {}},
      {"fault, the other path",
       "fault",
       one,
       {{"engine.fastpath_page", Word("on")}},
       {"engine.fastpath_page"}},
      {"single pages",
       "fault",
       one,
       {{"path", Word("page")}, {"engine.fastpath_page", Word("on")}},
       {}},
      {"single pages, the other path",
       "fault",
       one,
       {{"path", Word("page")}, {"engine.fastpath_fault", Word("on")}},
       {"engine.fastpath_fault"}},
      {"fault, two nodes",
       "fault",
       two,
       {{"engine.fastpath", Word("on")}, {"engine.policy", Word("bind:1")}},
       {"engine.fastpath"}},
      {"fault, accounting", "fault", one, {{"engine.accounting", Word("off")}}, {}},
      {"memory that is there before",
       "bandwidth",
       one,
       {{"engine.fastpath", Word("on")}},
       {"engine.fastpath"}},
      {"memory that is there before, accounting",
       "bandwidth",
       one,
       {{"engine.accounting", Word("off")}, {"engine.page_source", Word("on-demand")}},
       {"engine.accounting", "engine.page_source"}},
      {"memory by a policy", "bandwidth", two, {{"engine.policy", Word("interleave:0,1")}}, {}},
      {"memory and pipes",
       "bandwidth",
       two,
       {{"engine.metadata_placement", Word("policy-node")},
        {"engine.slab", Word("cpu-slab")},
        {"engine.defrag_ratio", int64_t{0}}},
       {"engine.defrag_ratio", "engine.metadata_placement", "engine.slab"}},
      // Policies.
      {"interleave on one node",
       "transfer",
       one,
       {{"engine.policy", Word("interleave:0")}},
       {"engine.policy"}},
      {"interleave on two", "transfer", two, {{"engine.policy", Word("interleave:0,1")}}, {}},
      {"local is the default",
       "transfer",
       two,
       {{"engine.policy", Word("local")}},
       {"engine.policy"}},
      // The rest.
      {"slab, one node", "transfer", one, {{"engine.slab", Word("cpu-slab")}}, {"engine.slab"}},
      {"slab, two nodes", "transfer", two, {{"engine.slab", Word("cpu-slab")}}, {}},
      {"defrag, one node",
       "transfer",
       one,
       {{"engine.defrag_ratio", int64_t{0}}},
       {"engine.defrag_ratio"}},
      {"defrag, two nodes", "transfer", two, {{"engine.defrag_ratio", int64_t{0}}}, {}},
      {"accounting", "transfer", one, {{"engine.accounting", Word("off")}}, {}},
      {"limit", "transfer", one, {{"engine.memory_limit", int64_t{1 << 20}}}, {}},
      {"limit of nothing",
       "transfer",
       one,
       {{"engine.memory_limit", int64_t{1 << 20}}, {"engine.accounting", Word("off")}},
       {"engine.memory_limit"}},
      {"on demand", "transfer", one, {{"engine.page_source", Word("on-demand")}}, {}},
      {"spin", "transfer", one, {{"engine.wait_spin", int64_t{1000}}}, {}},
      {"wakeup", "transfer", one, {{"engine.wakeup", Word("always")}}, {}},
      {"nobody polls",
       "transfer",
       one,
       {{"engine.poll_wakeup", Word("none")}},
       {"engine.poll_wakeup"}},
  };
  for (const Case& c : cases) {
    const settings::Variant variant = VariantOf(c.workload, c.values);
    const Result<Names> inert = InertSwitches(variant, c.topology, kPage);

    ASSERT_TRUE(inert.ok()) << c.what << ": " << inert.status().ToString();
    EXPECT_EQ(*inert, c.inert) << c.what;
  }
}

TEST(InertSwitches, OfTheKernelThereAreNone) {
  const Result<settings::Variant> variant = settings::MakeVariant("transfer", "kernel", {});

  EXPECT_TRUE(InertSwitches(*variant, Nodes(1), kPage)->empty());
}

TEST(EngineSettings, EverySwitchReachesTheEngine) {
  const Result<pipe::EngineConfig> config = EngineConfigOf(VariantOf(
      "transfer",
      {{"engine.metadata_placement", Word("strict-policy")},
       {"engine.page_cache", Word("pool")},
       {"engine.interleave_bulk", Word("single-step")},
       {"engine.fastpath", Word("on")},
       {"engine.fastpath_bulk", Word("off")},
       {"engine.policy", Word("bind:0")},
       {"engine.slab", Word("cpu-slab")},
       {"engine.defrag_ratio", int64_t{7}},
       {"engine.accounting", Word("off")},
       {"engine.memory_limit", int64_t{123456}},
       {"engine.page_source", Word("on-demand")},
       {"engine.wait_spin", int64_t{5000}},
       {"engine.wakeup", Word("always")},
       {"engine.poll_wakeup", Word("edge-consumers")},
       {"engine.topology",
        settings::JsonText{R"({"distances":[[10,31],[31,10]],"nodes":[{"cpus":2,"memory":4096},)"
                           R"({"cpus":0,"memory":8192}],"remote_access":120})"}}}));

  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->metadata_placement, memory::MetadataPlacement::kStrictPolicy);
  EXPECT_EQ(config->page_cache, pipe::PageCache::kPool);
  EXPECT_EQ(config->interleave_bulk, memory::BulkAlgorithm::kSingleStep);
  EXPECT_TRUE(config->fastpath.fault && config->fastpath.page && config->fastpath.slab);
  EXPECT_FALSE(config->fastpath.bulk);
  ASSERT_TRUE(config->policy.has_value());
  EXPECT_EQ(memory::FormatPolicy(*config->policy), "bind:0");
  EXPECT_EQ(config->slab, memory::SlabForm::kCpuSlab);
  EXPECT_EQ(config->defrag_ratio, 7);
  EXPECT_FALSE(config->has_accounting);
  EXPECT_EQ(config->memory_limit_bytes, 123456u);
  EXPECT_EQ(config->page_source, memory::PageSource::kOnDemand);
  EXPECT_EQ(config->wait_spin, Microseconds(5));
  EXPECT_EQ(config->wakeup, pipe::Wakeup::kAlways);
  EXPECT_EQ(config->poll_wakeup, pipe::PollWakeup::kEdgeConsumers);
  ASSERT_TRUE(config->topology.has_value());
  ASSERT_EQ(config->topology->nodes.size(), 2u);
  EXPECT_EQ(config->topology->nodes[0].cpus, 2);
  EXPECT_EQ(config->topology->nodes[1].memory_bytes, 8192);
  EXPECT_EQ(config->topology->distances[0][1], 31);
  EXPECT_EQ(config->remote_access, Nanos(120));
}

TEST(EngineSettings, DefaultsAreTheBaseline) {
  const Result<pipe::EngineConfig> config = EngineConfigOf(VariantOf("transfer", {}));

  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->page_cache, pipe::PageCache::kTwoPage);
  EXPECT_FALSE(config->fastpath.page);
  EXPECT_FALSE(config->policy.has_value());
  EXPECT_FALSE(config->topology.has_value());
  EXPECT_TRUE(config->has_accounting);
  EXPECT_EQ(config->memory_limit_bytes, 0u);
}

TEST(EngineSettings, ASweepAndTheEngineTakeTheSamePolicies) {
  for (const char* text : {"default",
                           "local",
                           "default:0",
                           "local:",
                           "preferred:1",
                           "preferred:0,1",
                           "preferred",
                           "preferred:",
                           "preferred-many:0,1",
                           "bind:0-1",
                           "bind:0-1,3",
                           "bind:1-0",
                           "bind:0,",
                           "bind:,0",
                           "bind:64",
                           "bind:63",
                           "bind:-1",
                           "bind:a",
                           "bind:0=1",
                           "bind",
                           "bnd:0",
                           "interleave:0,1",
                           "interleave:0, 1",
                           "weighted-interleave:0=3,1=1",
                           "weighted-interleave:0,1",
                           "weighted-interleave:0=0",
                           "weighted-interleave:0=256",
                           "weighted-interleave:0=3,1",
                           "weighted-interleave:0=3,0=1",
                           "weighted-interleave:64=1",
                           "weighted-interleave:",
                           "Bind:0",
                           "bind:00",
                           "bind:0,0",
                           "bind :0"}) {
    EXPECT_EQ(settings::CheckPolicyText(text).ok(), memory::ParsePolicy(text).ok()) << text;
  }
  const auto refused =
      settings::MakeVariant("transfer", "engine", {{"engine.policy", Word("bnd:0")}});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("engine.policy"), std::string::npos);
}

}  // namespace
}  // namespace pipeyard::load
