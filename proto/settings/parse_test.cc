#include "proto/settings/parse.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/settings/cpu_text.h"
#include "proto/settings/policy_text.h"
#include "proto/settings/structure.h"

namespace pipeyard::settings {
namespace {

const Definition& Of(std::string_view name, std::string_view workload = "transfer") {
  const Definition* const found = FindDefinition(workload, name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(ParseValue, ReadsEachKindInBaseUnits) {
  EXPECT_EQ(*ParseValue(Of("writers"), "5"), Value(int64_t{5}));
  EXPECT_EQ(*ParseValue(Of("message_bytes"), "64KiB"), Value(int64_t{65536}));
  EXPECT_EQ(*ParseValue(Of("duration"), "1.5s"), Value(int64_t{1'500'000'000}));
  EXPECT_EQ(*ParseValue(Of("warmup"), "0"), Value(int64_t{0}));
  EXPECT_EQ(*ParseValue(Of("engine.page_cache"), "pool"), Value(std::string("pool")));
  EXPECT_EQ(*ParseValue(Of("engine.memory_limit"), "none"), Value(int64_t{0}));
  EXPECT_EQ(*ParseValue(Of("accounted", "bulk"), "true"), Value(true));
  EXPECT_EQ(*ParseValue(Of("placement.cpus"), "0-3,8"), Value(std::string("0-3,8")));
  EXPECT_EQ(*ParseValue({.kind = Kind::kPercent}, "2%"), Value(0.02));
  EXPECT_EQ(*ParseValue(Of("engine.topology"), "host"), Value(JsonText{"\"host\""}));
}

TEST(ParseValue, SaysWhatIsWrongAndWhatWasMeant) {
  struct Case {
    std::string name, text, message;
  };
  const std::vector<Case> cases = {
      {"writers", "x", "'x' is no whole number; one such as 4 was meant"},
      {"writers", "", "'' is no whole number; one such as 4 was meant"},
      {"writers", "1.0", "'1.0' is no whole number; one such as 4 was meant"},
      {"writers", "+1", "'+1' is no whole number; one such as 4 was meant"},
      {"writers", "0x4", "'0x4' is no whole number; one such as 4 was meant"},
      {"writers", "08", "'08' begins with a zero; 8 was meant, without it"},
      {"writers", "0", "0 is out of range; 1 to 1024 was meant"},
      {"writers", "-3", "-3 is out of range; 1 to 1024 was meant"},
      {"writers", "99999999999999999999", "'99999999999999999999' is too large"},
      {"pipe_bytes", "1KiB", "1KiB is out of range; 4KiB to 2GiB was meant"},
      {"duration", "0", "0 is out of range; 1ms to 1d was meant"},
      {"workers", "fibres",
       "'fibres' is not one of its values; one of threads, processes was meant"},
      {"allocator", "aged",
       "'aged' is no state of an allocator; fresh, or aged:NODE such as aged:1 was meant"},
      {"allocator", "aged:64",
       "'aged:64' is no state of an allocator; fresh, or aged:NODE such as aged:1 was meant"},
      {"allocator", "aged:1,2",
       "'aged:1,2' is no state of an allocator; fresh, or aged:NODE such as aged:1 was meant"},
      {"placement.cpus", "a;b", "'a;b' holds a ';'"},
      {"placement.cpus", "a\nb", "holds a control character"},
      {"placement.cpus", "a\xC2\x9B", "holds a control character"},
      {"placement.cpus", " a", "' a' begins or ends with a space"},
      {"placement.cpus", "\xff", "is no valid UTF-8"},
      {"placement.cpus", std::string(257, 'a'), "257 bytes are too long; at most 256 were meant"},
  };
  for (const Case& each : cases) {
    const Result<Value> value = ParseValue(Of(each.name), each.text);
    ASSERT_FALSE(value.ok()) << each.name << " " << each.text;
    EXPECT_EQ(value.status().message(), each.message);
  }
  EXPECT_EQ(ParseValue(Of("accounted", "bulk"), "on").status().message(),
            "'on' is no flag; true or false was meant");
}

TEST(ParseValue, NamesTheUnitThatIsMissing) {
  const std::string message = ParseValue(Of("message_bytes"), "65536").status().message();
  EXPECT_NE(message.find("lacks its unit"), std::string::npos) << message;
  EXPECT_NE(message.find("64KiB"), std::string::npos) << message;
}

TEST(FormatValue, ReadsBackToTheSameValue) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"writers", {"1", "1024"}},
      {"message_bytes", {"1B", "100B", "64KiB", "1000kB", "1MB", "3MiB"}},
      {"duration", {"1ms", "1.5s", "90s", "1d"}},
      {"engine.memory_limit", {"none", "1GiB"}},
      {"engine.topology", {"host", R"({"nodes":[{"cpus":"2","memory":"256MiB"}]})"}},
      {"placement.memory", {"bind:0", "weighted-interleave:0=3,1=1"}},
  };
  for (const auto& [name, texts] : cases) {
    for (const std::string& text : texts) {
      const Result<Value> value = ParseValue(Of(name), text);
      ASSERT_TRUE(value.ok()) << text;
      EXPECT_EQ(*ParseValue(Of(name), FormatValue(Of(name), *value)), *value) << text;
    }
  }
  const Definition percent{.kind = Kind::kPercent};
  for (const std::string text : {"2%", "0.1%", "7%", "12.5%", "100%", "33.333%"}) {
    EXPECT_EQ(FormatValue(percent, *ParseValue(percent, text)), text);
  }
}

TEST(CheckValue, RefusesAnotherKind) {
  EXPECT_FALSE(CheckValue(Of("writers"), Value(std::string("1"))).ok());
  EXPECT_FALSE(CheckValue(Of("writers"), Value(1.0)).ok());
  EXPECT_FALSE(CheckValue(Of("writers"), Value(true)).ok());
  EXPECT_FALSE(CheckValue(Of("workers"), Value(int64_t{1})).ok());
  EXPECT_FALSE(CheckValue(Of("engine.topology"), Value(std::string("host"))).ok());
  EXPECT_FALSE(CheckValue({.kind = Kind::kPercent}, Value(-0.5)).ok());
  EXPECT_FALSE(CheckValue({.kind = Kind::kPercent}, Value(0.0 / 0.0)).ok());
}

TEST(Topology, BecomesBaseUnitsWithWhatWasLeftOut) {
  const Result<JsonText> topology = ParseTopology(
      R"({"remote_access":"120ns","nodes":[{"memory":"256MiB","cpus":"2"},{"memory":"1GiB"}]})");

  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_EQ(topology->text,
            R"({"distances":[[10,20],[20,10]],"nodes":[{"cpus":2,"memory":268435456},)"
            R"({"cpus":0,"memory":1073741824}],"remote_access":120})");
  EXPECT_EQ(*ParseTopology(topology->text), *topology);
  EXPECT_EQ(CheckTopology(topology->text), Status::Ok());
}

TEST(Topology, SaysWhichPartIsWrong) {
  const std::string node = R"({"cpus":"2","memory":"1GiB"})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"emulated", "no valid JSON"},
      {"[]", "a map was meant"},
      {"{}", "lacks nodes"},
      {R"({"nodes":[]})", "1 to 64 nodes"},
      {R"({"nodes":[{"cpus":"2"}]})", "none has memory"},
      {R"({"nodes":[{"memory":"1GiB"}]})", "none has cpus"},
      {R"({"nodes":[{"cpus":"2","memory":"1"}]})", "nodes[0].memory: '1' lacks its unit"},
      {R"({"nodes":[{"cpu":"2"}]})", "nodes[0] has the unknown key 'cpu'"},
      {R"({"nodes":[{"cpus":"two","memory":"1GiB"}]})", "nodes[0].cpus: 'two' is no whole number"},
      {R"({"nodes":[{"cpus":[],"memory":"1GiB"}]})", "nodes[0].cpus is no number"},
      {R"({"nodes":[)" + node + R"(],"distances":[["11"]]})", "distances[0][0] is 11"},
      {R"({"nodes":[)" + node + R"(],"distances":[["10","20"]]})",
       "distances[0] has not 1 columns"},
      {R"({"nodes":[)" + node + R"(],"speed":"1"})", "unknown key 'speed'"},
      {R"({"nodes":[)" + node + R"(],"nodes":[]})", "'nodes' twice"},
      {R"({"nodes":[)" + node + R"(],"remote_access":"5"})", "remote_access: '5' lacks its unit"},
      {std::string(1000, '['), "nested too deeply"},
      {std::string(70000, ' '), "longer than 64 KiB"},
  };
  for (const auto& [text, part] : cases) {
    const Result<JsonText> topology = ParseTopology(text);
    ASSERT_FALSE(topology.ok()) << text.substr(0, 80);
    EXPECT_NE(topology.status().message().find(part), std::string::npos)
        << topology.status().message();
  }
}

TEST(CanonicalJson, SortsKeysAndDropsSpace) {
  EXPECT_EQ(CanonicalJson(R"( { "b": [1, 2], "a": {"d": "x", "c": null} } )")->text,
            R"({"a":{"c":null,"d":"x"},"b":[1,2]})");
  EXPECT_FALSE(CanonicalJson("{").ok());
  EXPECT_FALSE(CanonicalJson("\"\xff\"").ok());
}

TEST(ParseCpuText, ReadsEveryForm) {
  const auto kind = [](std::string_view text) { return ParseCpuText(text)->kind; };

  EXPECT_EQ(kind(""), CpuTextKind::kInherited);
  EXPECT_EQ(kind("spread"), CpuTextKind::kSpread);
  EXPECT_EQ(kind("one-per-core"), CpuTextKind::kOnePerCore);
  EXPECT_EQ(kind("nearest-cxl"), CpuTextKind::kNodeRole);
  EXPECT_EQ(ParseCpuText("8,0-2,1")->numbers, (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(ParseCpuText("node2,node0")->numbers, (std::vector<int>{0, 2}));
  EXPECT_EQ(ParseCpuText("50%cpus")->percent, 50);
}

TEST(ParseCpuText, RefusesWhatNamesNoCpus) {
  for (const char* const text : {"node", "node64", "node0,1", "0,node1", "3-1", "8192", "0,", "-1",
                                 "0%cpus", "101%cpus", "%cpus", "all", "node0-1", " 0", "0 "}) {
    EXPECT_EQ(ParseCpuText(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(CheckPolicyText, ANodeRoleStandsWhereNodesStandAlone) {
  EXPECT_TRUE(CheckPolicyText("interleave:dram-nodes").ok());
  EXPECT_TRUE(CheckPolicyText("preferred:nearest-cxl").ok());
  EXPECT_TRUE(CheckPolicyText("bind:0,cxl-nodes").ok());
  EXPECT_FALSE(CheckPolicyText("weighted-interleave:dram-nodes=3").ok());
  EXPECT_FALSE(CheckPolicyText("preferred:dram-nodes,cxl-nodes").ok());
  EXPECT_FALSE(CheckPolicyText("bind:far-nodes").ok());
}

}  // namespace
}  // namespace pipeyard::settings
