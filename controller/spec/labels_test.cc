#include "controller/spec/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/spec/sweep.h"

namespace pipeyard::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(Labels, TheFirstEqualsSignDividesAndValuesMayBeEmpty) {
  const Result<Labels> labels = ParseLabels({"build=a=b", "rack="});

  ASSERT_TRUE(labels.ok()) << labels.status().ToString();
  EXPECT_THAT(*labels, ElementsAre(Pair("build", "a=b"), Pair("rack", "")));
}

TEST(Labels, WhatNobodyCouldReadOrFilterByIsRefused) {
  const struct {
    std::vector<std::string> texts;
    std::string why;
  } kCases[] = {
      {{"build"}, "'build' is no label; KEY=VALUE was meant"},
      {{"=x"}, "a label's key is empty"},
      {{"a=1", "b=2", "a=3"}, "the label 'a' is given twice"},
      {{"a\x1b[31m=1"}, "holds a line break or another control character"},
      {{"a\xC2\x9B\x32J=1"}, "holds a line break or another control character"},
      {{"a=\xC2\x9B\x32J"}, "the value of label 'a': holds a line break"},
      {{"a=1\n2"}, "the value of label 'a': holds a line break"},
      {{"a=\xff"}, "the value of label 'a': is no UTF-8"},
      {{std::string(64, 'k') + "=1"}, "64 bytes are too long; at most 63 bytes"},
      {{"a=" + std::string(1025, 'v')}, "1025 bytes are too long; at most 1024 bytes"},
      {std::vector<std::string>(65, "a=1"), "65 labels are too many; at most 64"},
  };
  for (const auto& c : kCases) {
    const Result<Labels> labels = ParseLabels(c.texts);
    EXPECT_EQ(labels.status().code(), StatusCode::kInvalidArgument) << c.why;
    EXPECT_THAT(labels.status().message(), HasSubstr(c.why));
  }
  EXPECT_TRUE(ParseLabels({std::string(63, 'k') + "=" + std::string(1024, 'v')}).ok());
}

TEST(Labels, ThoseOfASweepFileKeepTheSameRules) {
  const ReadResult read =
      ReadSweep("sweep: s\nworkload: transfer\ntarget: engine\nlabels:\n  \"\": x\n  " +
                    std::string(64, 'k') + ": y\n",
                {});

  ASSERT_EQ(read.problems.size(), 2u);
  EXPECT_EQ(read.problems[0].line, 5u);
  EXPECT_THAT(read.problems[0].what, HasSubstr("labels: a label's key is empty"));
  EXPECT_EQ(read.problems[1].line, 6u);
  EXPECT_THAT(read.problems[1].what, HasSubstr("64 bytes are too long"));
}

TEST(Notes, HoldLinesButNoEscapes) {
  EXPECT_TRUE(CheckNote("first\n\tsecond").ok());
  EXPECT_THAT(CheckNote("\x1b[2J").message(), HasSubstr("the note: holds"));
  EXPECT_THAT(CheckNote("\xC2\x9B\x32J").message(), HasSubstr("the note: holds"));
  EXPECT_THAT(CheckNote(std::string(4097, 'n')).message(), HasSubstr("at most 4096 bytes"));
}

}  // namespace
}  // namespace pipeyard::spec
