#include "workloads/numa/node_mask.h"

#include <gtest/gtest.h>

namespace pipeyard::numa {
namespace {

TEST(NumberList, ReadsTheKernelsFormat) {
  struct Case {
    const char* text;
    std::vector<int> numbers;
  };
  const Case cases[] = {
      {"0", {0}},           {"0-3\n", {0, 1, 2, 3}}, {"0-1,8", {0, 1, 8}},
      {"8,0-1", {0, 1, 8}}, {"1,1-2", {1, 2}},       {"", {}},
      {"\n", {}},           {" 5 \n", {5}},          {"63", {63}},
  };
  for (const Case& c : cases) {
    const Result<std::vector<int>> numbers = ParseNumberList(c.text, 63);
    ASSERT_TRUE(numbers.ok()) << c.text;
    EXPECT_EQ(*numbers, c.numbers) << c.text;
  }
}

TEST(NumberList, RefusesWhatIsNoList) {
  for (const char* text : {"x", "can't be true", "3-1", "0,", ",0", "0--1", "-1", "1-",
                           "0-4294967295", "64", "0x1", "1 2", "0-3:2", "99999999999999999999"}) {
    EXPECT_EQ(ParseNumberList(text, 63).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(NumberList, FormatIsReadBack) {
  for (const char* text : {"", "0", "0-3", "0-1,8", "1,3,5-7,63"}) {
    EXPECT_EQ(FormatNumberList(*ParseNumberList(text, 63)), text);
  }
}

TEST(NodeMask, HoldsTheHighestNode) {
  NodeMask mask = NodeMask::Of({0, 63});

  EXPECT_EQ(mask.Count(), 2);
  EXPECT_EQ(mask.ToString(), "0,63");
  EXPECT_EQ(mask.Minus(NodeMask::Of({0})).Nodes(), std::vector<NodeId>{63});
  EXPECT_TRUE(NodeMask::Of({63}).IsSubsetOf(mask));
  EXPECT_FALSE(NodeMask::Of({1}).IsSubsetOf(mask));
}

}  // namespace
}  // namespace pipeyard::numa
