#include "workloads/memory/weight_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace pipeyard::memory {
namespace {

using numa::NodeMask;

using Tree = std::map<std::string, std::string>;

numa::ReadFile FilesOf(Tree tree) {
  return [tree = std::move(tree)](const std::string& path) -> Result<std::string> {
    const auto file = tree.find(path);
    if (file == tree.end()) return NotFound("open " + path);
    return file->second;
  };
}

std::string Path(const std::string& name) { return kWeightDir + name; }

TEST(ReadHostWeights, ReadsTheNodesThatHaveAFile) {
  const Result<HostWeights> host = ReadHostWeights(
      FilesOf({{Path("node0"), "10\n"}, {Path("node2"), "255"}}), NodeMask::Of({0, 1, 2}));

  ASSERT_TRUE(host.ok()) << host.status().ToString();
  EXPECT_EQ(host->table[0], 10);
  EXPECT_EQ(host->table[1], 1);
  EXPECT_EQ(host->table[2], 255);
  EXPECT_EQ(host->nodes, NodeMask::Of({0, 2}));
  EXPECT_FALSE(host->is_auto.has_value());
}

TEST(ReadHostWeights, AKernelWithoutATableIsAllOnes) {
  const Result<HostWeights> host = ReadHostWeights(FilesOf({}), NodeMask::Of({0, 1}));

  ASSERT_TRUE(host.ok()) << host.status().ToString();
  EXPECT_EQ(host->table, WeightTable{});
  EXPECT_TRUE(host->nodes.IsEmpty());
}

// H12: 6.18 names the file __auto_type, and reading gives true or false where the ABI says Y or N.
TEST(ReadHostWeights, ReadsAutoUnderBothNamesAndInEverySpelling) {
  for (const char* name : {"auto", "__auto_type"}) {
    for (const auto& [text, is_auto] : {std::pair{"Y\n", true},
                                        {"1\n", true},
                                        {"true\n", true},
                                        {"N\n", false},
                                        {"0", false},
                                        {"false\n", false}}) {
      SCOPED_TRACE(std::string(name) + " " + text);
      const Result<HostWeights> host =
          ReadHostWeights(FilesOf({{Path(name), text}}), NodeMask::Of({0}));
      ASSERT_TRUE(host.ok()) << host.status().ToString();
      EXPECT_EQ(host->is_auto, is_auto);
    }
  }
}

TEST(ReadHostWeights, NonsenseInAFileIsNamedWithTheFile) {
  for (const auto& [name, text] : {std::pair{"node0", "0\n"},
                                   {"node0", "256\n"},
                                   {"node0", ""},
                                   {"node0", "\n"},
                                   {"node0", "three\n"},
                                   {"node0", "3x\n"},
                                   {"node0", "-1\n"},
                                   {"node0", "99999999999999999999\n"},
                                   {"auto", "maybe\n"},
                                   {"auto", ""},
                                   {"__auto_type", "2\n"}}) {
    SCOPED_TRACE(std::string(name) + " '" + text + "'");
    const Result<HostWeights> host =
        ReadHostWeights(FilesOf({{Path(name), text}}), NodeMask::Of({0}));
    ASSERT_FALSE(host.ok());
    EXPECT_EQ(host.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(host.status().message().find(Path(name)), std::string::npos)
        << host.status().message();
  }
}

TEST(ReadHostWeights, AFileThatCannotBeReadIsAnErrorNotAMissingOne) {
  for (const char* broken : {"node1", "__auto_type"}) {
    const numa::ReadFile read = [&](const std::string& path) -> Result<std::string> {
      if (path == Path(broken)) return Status(StatusCode::kPermissionDenied, "read " + path);
      return NotFound("open " + path);
    };
    const Result<HostWeights> host = ReadHostWeights(read, NodeMask::Of({0, 1}));
    ASSERT_FALSE(host.ok());
    EXPECT_EQ(host.status().code(), StatusCode::kPermissionDenied);
  }
}

struct Reduction {
  std::map<int, uint32_t> bandwidths;
  std::map<int, int> weights;
};

TEST(AutoWeights, ScalesToThirtyTwoAndReduces) {
  for (const Reduction& reduction : {
           Reduction{{{0, 100}, {1, 100}}, {{0, 1}, {1, 1}}},
           // 32 * 300/400 = 24 and 8: 3:1.
           {{{0, 300}, {1, 100}}, {{0, 3}, {1, 1}}},
           // 32 * 200/300 = 21 (21.3) and 10 (10.7): no common divisor.
           {{{0, 200}, {1, 100}}, {{0, 21}, {1, 10}}},
           // Below 1 becomes 1, and then nothing divides.
           {{{0, 1000}, {1, 1}}, {{0, 31}, {1, 1}}},
           {{{0, 1000}, {1, 0}}, {{0, 32}, {1, 1}}},
           {{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}},
           {{{3, 77}}, {{3, 1}}},
           // No overflow at the largest reports.
           {{{0, UINT32_MAX}, {1, UINT32_MAX}, {2, UINT32_MAX}, {3, UINT32_MAX}},
            {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
       }) {
    Bandwidths bandwidths{};
    NodeMask nodes;
    for (const auto& [node, bandwidth] : reduction.bandwidths) {
      nodes.Add(node);
      bandwidths[static_cast<size_t>(node)] = bandwidth;
    }

    const WeightTable table = AutoWeights(bandwidths, nodes);

    for (const auto& [node, weight] : reduction.weights) EXPECT_EQ(table[node], weight) << node;
  }
}

TEST(WeightControl, ReportsAndNodesChangeAllWeightsInAutoMode) {
  WeightControl control(NodeMask::Of({0, 1}));
  control.ReportBandwidth(0, 300, 900);
  control.ReportBandwidth(1, 500, 100);
  EXPECT_EQ(control.table()[0], 3);
  EXPECT_EQ(control.table()[1], 1);

  control.OfflineNode(1);
  EXPECT_EQ(control.table()[0], 1);

  control.OnlineNode(1);
  EXPECT_EQ(control.table()[0], 3);
}

// H12.
TEST(WeightControl, WritingAWeightFreezesTheOthersAndNewNodesGetOne) {
  WeightControl control(NodeMask::Of({0, 1}));
  control.ReportBandwidth(0, 300, 300);
  control.ReportBandwidth(1, 100, 100);

  ASSERT_TRUE(control.WriteWeight(1, "7\n").ok());
  EXPECT_FALSE(control.is_auto());
  control.ReportBandwidth(0, 100, 100);
  control.OnlineNode(2);
  control.ReportBandwidth(2, 900, 900);

  EXPECT_EQ(control.table()[0], 3);
  EXPECT_EQ(control.table()[1], 7);
  EXPECT_EQ(control.table()[2], 1);
}

// H12: what was reported meanwhile counts once auto mode is back.
TEST(WeightControl, AutoModeComesBackWithWhatWasReportedMeanwhile) {
  WeightControl control(NodeMask::Of({0, 1}));
  control.ReportBandwidth(0, 300, 300);
  control.ReportBandwidth(1, 100, 100);
  ASSERT_TRUE(control.WriteAuto("N").ok());
  control.ReportBandwidth(1, 300, 300);
  EXPECT_EQ(control.table()[0], 3);

  ASSERT_TRUE(control.WriteAuto("true\n").ok());

  EXPECT_TRUE(control.is_auto());
  EXPECT_EQ(control.table()[0], 1);
}

// H12.
TEST(WeightControl, RefusesWhatTheKernelCallsEinvalAndChangesNothing) {
  WeightControl control(NodeMask::Of({0, 1}));
  control.ReportBandwidth(0, 300, 300);
  control.ReportBandwidth(1, 100, 100);
  for (const char* text : {"0", "0\n", "", "\n", "256", "-1", "x", "1 2"}) {
    const Status status = control.WriteWeight(0, text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(control.WriteWeight(5, "3").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(control.WriteWeight(64, "3").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(control.WriteWeight(-1, "3").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(control.WriteAuto("maybe").code(), StatusCode::kInvalidArgument);

  EXPECT_TRUE(control.is_auto());
  EXPECT_EQ(control.table()[0], 3);
}

TEST(WeightControl, AutoModeNeedsAReport) {
  WeightControl control(NodeMask::Of({0}));
  ASSERT_TRUE(control.WriteWeight(0, "5").ok());

  EXPECT_EQ(control.WriteAuto("Y").code(), StatusCode::kUnavailable);

  EXPECT_FALSE(control.is_auto());
  EXPECT_EQ(control.table()[0], 5);
}

}  // namespace
}  // namespace pipeyard::memory
