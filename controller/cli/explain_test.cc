#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "controller/cli/explain_bulk.h"
#include "controller/cli/explain_metadata.h"
#include "controller/cli/program.h"

namespace pipeyard::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

options::Parsed ParseLine(std::vector<std::string> words) {
  words.insert(words.begin(), "pipeyard");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const options::ParseResult result =
      options::Parse(MakeProgram(), static_cast<int>(argv.size()), argv.data(),
                     [](const std::string&) { return std::nullopt; });
  EXPECT_FALSE(result.exit_status.has_value()) << result.err;
  return result.parsed;
}

json Bulk(std::vector<std::string> words) {
  words.insert(words.begin(), {"explain", "bulk"});
  const Result<BulkQuestion> question = ReadBulkQuestion(ParseLine(words));
  if (!question.ok()) return question.status().message();
  return json::parse(BulkJson(*question, AnswerBulk(*question)));
}

using Tree = std::map<std::string, std::string>;

// Two nodes with two CPUs each and a table of weights.
Tree TwoNodes() {
  const std::string nodes = "/sys/devices/system/node/";
  Tree tree = {{"/sys/devices/system/cpu/online", "0-3\n"},
               {nodes + "online", "0-1\n"},
               {"/sys/kernel/mm/mempolicy/weighted_interleave/node0", "2\n"},
               {"/sys/kernel/mm/mempolicy/weighted_interleave/node1", "1\n"}};
  for (const auto& [id, cpus, distances] :
       {std::tuple{"0", "0-1\n", "10 21\n"}, {"1", "2-3\n", "21 10\n"}}) {
    const std::string dir = nodes + "node" + id + "/";
    tree[dir + "cpulist"] = cpus;
    tree[dir + "distance"] = distances;
    tree[dir + "meminfo"] = std::string("Node ") + id + " MemTotal: 1048576 kB\n";
  }
  return tree;
}

json Metadata(std::vector<std::string> words, Tree tree = TwoNodes()) {
  words.insert(words.begin(), {"explain", "metadata"});
  const numa::ReadFile files = [&](const std::string& path) -> Result<std::string> {
    const auto file = tree.find(path);
    if (file == tree.end()) return NotFound("open " + path);
    return file->second;
  };
  const Result<MetadataQuestion> question = ReadMetadataQuestion(ParseLine(words), files);
  if (!question.ok()) return question.status().message();
  return json::parse(MetadataJson(*question, AnswerMetadata(*question)));
}

TEST(ExplainBulk, PrintsTheKnownAnswersOfFoldedAndSplitCarry) {
  std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/weighted_interleave.json");
  const json vectors = json::parse(file)["vectors"];
  for (const json& vector : vectors) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    std::string weights;
    for (const auto& [node, weight] : vector["weights"].items())
      weights += (weights.empty() ? "" : ",") + node + "=" + weight.dump();
    const std::vector<std::string> words = {"--weights",  weights,
                                            "--prev",     vector["start"]["il_prev"].dump(),
                                            "--carry",    vector["start"]["il_weight"].dump(),
                                            "--pages",    vector["nr_pages"].dump(),
                                            "--algorithm"};
    for (const auto& [algorithm, calls, end] :
         {std::tuple{"folded-carry", vector["expect"]["fold_calls"], vector["expect"]["end_raw"]},
          {"split-carry", vector["upstream_before"]["calls"],
           vector["upstream_before"]["end_raw"]}}) {
      std::vector<std::string> all = words;
      all.push_back(algorithm);

      const json answer = Bulk(all);

      EXPECT_EQ(answer["algorithm"], algorithm);
      EXPECT_EQ(answer["calls"], calls);
      EXPECT_EQ(answer["per_node"], vector["expect"]["per_node"]);
      EXPECT_EQ(answer["end"], (json{{"prev", end[0]}, {"carry", end[1]}}));
      const json& canonical = vector["expect"]["end_canonical"];
      EXPECT_EQ(answer["end_canonical"], (json{{"prev", canonical[0]}, {"carry", canonical[1]}}));
    }
  }
}

TEST(ExplainBulk, AFreshTaskIsTheDefaultAndNodesWithoutPagesAreLeftOut) {
  const json answer = Bulk({"--weights", "0=3,1=1", "--pages", "2", "--algorithm", "single-step"});

  EXPECT_EQ(answer["schema"], "pipeyard.explain_bulk/v1");
  EXPECT_EQ(answer["calls"], json::parse("[[0, 1], [0, 1]]"));
  EXPECT_EQ(answer["per_node"], (json{{"0", 2}}));
  EXPECT_EQ(answer["end"], (json{{"prev", 0}, {"carry", 1}}));
}

TEST(ExplainBulk, TheTableSaysWhatComesNext) {
  const Result<BulkQuestion> question =
      ReadBulkQuestion(ParseLine({"explain", "bulk", "--weights", "0=3,1=1", "--prev", "0",
                                  "--carry", "1", "--pages", "6", "--algorithm", "folded-carry"}));
  ASSERT_TRUE(question.ok());

  const std::string text = BulkText(*question, AnswerBulk(*question));

  EXPECT_EQ(text,
            "folded-carry of 6 pages, 1 of which node 0 still has to give\n"
            "\n"
            "call  node  pages\n"
            "   1     0      4\n"
            "   2     1      2\n"
            "\n"
            "node  weight  pages\n"
            "   0       3      4\n"
            "   1       1      2\n"
            "\n"
            "ends at prev 1, carry 0: the next 3 pages come from node 0\n");
}

TEST(ExplainBulk, WhatIsWrongNamesItsOptionAndTheRemedy) {
  for (const auto& [words, said] : {
           std::pair<std::vector<std::string>, const char*>{{"--pages", "6"},
                                                            "--weights is missing"},
           {{"--weights", "0=3"}, "--pages is missing"},
           {{"--weights", "0=0", "--pages", "6"}, "--weights: '0=0': the weight is not"},
           {{"--weights", "0=3,0=1", "--pages", "6"}, "named twice"},
           {{"--weights", "0", "--pages", "6"}, "every node needs a weight"},
           {{"--weights", "0=3", "--pages", "many"}, "--pages 'many': not a whole number"},
           {{"--weights", "0=3", "--pages", "-1"}, "--pages '-1'"},
           {{"--weights", "0=3", "--pages", "6", "--prev", "64"}, "--prev '64'"},
           {{"--weights", "0=3", "--pages", "6", "--carry", "256"}, "--carry '256'"},
           {{"--weights", "0=3", "--pages", "6", "--algorithm", "posted-patch"},
            "--algorithm: 'posted-patch' computes wrong"},
           {{"--weights", "0=3", "--pages", "6", "--algorithm", "x"}, "split-carry, single-step"},
           {{"--weights", "0=3", "--pages", "100001", "--algorithm", "single-step"},
            "prints at most 100000"},
       }) {
    EXPECT_THAT(Bulk(words).get<std::string>(), HasSubstr(said));
  }
}

TEST(ExplainMetadata, ShowsAllPlacementsOnTheHostsNodes) {
  const json answer = Metadata({"--policy", "preferred:1"});

  EXPECT_EQ(answer["schema"], "pipeyard.explain_metadata/v1");
  EXPECT_EQ(answer["local_node"], 0);
  EXPECT_EQ(answer["max_slab_slots"], 204);
  ASSERT_EQ(answer["placements"].size(), 3u);
  const json& any = answer["placements"][0];
  EXPECT_EQ(any["placement"], "any-node");
  EXPECT_TRUE(any["objects"][0]["node"].is_null());
  EXPECT_TRUE(any["objects"][0]["asked_by"].is_null());
  const json& policy = answer["placements"][1];
  EXPECT_EQ(policy["objects"][0]["node"], 1);
  EXPECT_EQ(policy["objects"][0]["asked_by"], "pipe");
  EXPECT_EQ(policy["objects"][1]["node"], 1);
  EXPECT_TRUE(policy["objects"][1]["asked_by"].is_null()) << "one question for info and ring";
  const json& strict = answer["placements"][2];
  EXPECT_EQ(strict["objects"][1]["asked_by"], "slab-allocator");
  EXPECT_EQ(strict["objects"].size(), 2u) << "16 slots are no resize";
}

// H13.
TEST(ExplainMetadata, ALargeRingIsLeftToThePageAllocatorWhichAdvancesOnce) {
  const json answer = Metadata({"--slots", "256", "--policy", "interleave:0,1", "--placement",
                                "policy-node", "--nodes", "2"});

  const json& objects = answer["placements"][0]["objects"];
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0]["node"], 0);
  EXPECT_EQ(objects[1]["node"], 0);
  EXPECT_EQ(objects[2]["source"], "page-block");
  EXPECT_TRUE(objects[2]["named_node"].is_null());
  EXPECT_EQ(objects[2]["asked_by"], "page-allocator");
  EXPECT_EQ(objects[2]["node"], 1);
  EXPECT_EQ(answer["placements"][0]["end"], (json{{"prev", 1}, {"carry", 0}}));
}

TEST(ExplainMetadata, ASmallResizeAsksOnceMoreAndTheCutOffFollowsThePage) {
  const json small = Metadata({"--slots", "128", "--policy", "interleave:0,1", "--placement",
                               "policy-node", "--nodes", "2"});
  EXPECT_EQ(small["placements"][0]["objects"][2]["source"], "slab");
  EXPECT_EQ(small["placements"][0]["objects"][2]["asked_by"], "pipe");

  const json large_pages = Metadata({"--slots", "2048", "--page-bytes", "64KiB"});
  EXPECT_EQ(large_pages["placements"][0]["objects"][2]["source"], "slab");
}

// As the engine: slab_strict_numa is off there, and interleaving stands still.
TEST(ExplainMetadata, StrictPolicyAsksNobodyOnOneNode) {
  const json answer = Metadata({"--policy", "interleave:0", "--placement", "strict-policy",
                                "--nodes", "1"})["placements"][0];

  for (const json& object : answer["objects"]) {
    EXPECT_TRUE(object["asked_by"].is_null());
    EXPECT_TRUE(object["node"].is_null());
    EXPECT_THAT(object["why"].get<std::string>(), HasSubstr("one node only"));
  }
  EXPECT_EQ(answer["end"], (json{{"prev", 63}, {"carry", 0}}));
}

TEST(ExplainMetadata, DistancesAndTheCpusNodeDecideWhatIsNearest) {
  const json answer =
      Metadata({"--policy", "bind:0,1", "--placement", "policy-node", "--nodes", "3", "--distances",
                "10,20,40/20,10,15/40,15,10", "--cpu-node", "2"});

  EXPECT_EQ(answer["cpu_node"], 2);
  EXPECT_EQ(answer["placements"][0]["objects"][0]["node"], 1);
}

TEST(ExplainMetadata, TheHostsWeightsServeAPolicyWithoutAny) {
  const json answer = Metadata(
      {"--policy", "weighted-interleave:0,1", "--placement", "strict-policy", "--slots", "32"});

  const json& objects = answer["placements"][0]["objects"];
  EXPECT_EQ(objects[0]["node"], 0);
  EXPECT_EQ(objects[1]["node"], 0);
  EXPECT_EQ(objects[2]["node"], 1);
}

TEST(ExplainMetadata, WhatIsWrongNamesItsOptionAndTheRemedy) {
  for (const auto& [words, said] : {
           std::pair<std::vector<std::string>, const char*>{{"--slots", "100"}, "gets 128"},
           {{"--slots", "0"}, "--slots '0'"},
           {{"--policy", "bound"}, "--policy: policy 'bound': not one of"},
           {{"--policy", "bind:5"}, "--policy bind:5 (--nodes N describes"},
           {{"--placement", "x"}, "--placement: 'x': not one of any-node"},
           {{"--cpu-node", "7"}, "--cpu-node 7: no node with CPUs; those are 0-1"},
           {{"--page-bytes", "5KiB"}, "--page-bytes '5KiB'"},
           {{"--page-bytes", "x"}, "--page-bytes: "},
           {{"--nodes", "0"}, "--nodes '0'"},
           {{"--distances", "10"}, "--distances needs --nodes"},
           {{"--nodes", "2", "--distances", "10,x"}, "--distances '10,x'"},
           {{"--nodes", "2", "--distances", "10,20/20,10/1,1"}, "3 rows and --nodes is 2"},
           {{"--nodes", "2", "--distances", "10,20/20"}, "--distances: "},
           {{"--nodes", "2", "--distances", "10,9/20,10"}, "--distances: "},
       }) {
    EXPECT_THAT(Metadata(words).get<std::string>(), HasSubstr(said));
  }
}

TEST(ExplainMetadata, AMachineThatCannotBeReadIsSaidWithTheWayOut) {
  Tree broken = TwoNodes();
  broken["/sys/kernel/mm/mempolicy/weighted_interleave/node1"] = "0\n";
  EXPECT_THAT(Metadata({"--policy", "weighted-interleave:0,1"}, broken).get<std::string>(),
              HasSubstr("weighted-interleave:N=W"));
  EXPECT_THAT(Metadata({}, Tree{}).get<std::string>(), HasSubstr("--nodes N"));
}

TEST(ExplainMetadata, TheTableSaysWhereAndWhy) {
  const options::Parsed parsed =
      ParseLine({"explain", "metadata", "--policy", "interleave:0,1", "--slots", "256", "--nodes",
                 "2", "--placement", "policy-node"});
  const Result<MetadataQuestion> question = ReadMetadataQuestion(parsed, numa::HostFiles());
  ASSERT_TRUE(question.ok()) << question.status().ToString();

  const std::string text = MetadataText(*question, AnswerMetadata(*question));

  EXPECT_THAT(text, HasSubstr("rings of up to 128 slots are slab objects"));
  EXPECT_THAT(text,
              HasSubstr("info                 168  slab           0  the pipe asks the policy"));
  EXPECT_THAT(text, HasSubstr("ring after resize  10240  page-block     1  too large for a slab"));
  EXPECT_THAT(text, HasSubstr("from prev 63, carry 0 to prev 1, carry 0"));
}

}  // namespace
}  // namespace pipeyard::cli
