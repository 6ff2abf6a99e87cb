#include "workloads/load/memory_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace pipeyard::load {
namespace {

constexpr size_t kPage = 4096;

// Three pages and what follows the first one.
class MemorySweep : public testing::Test {
 protected:
  MemorySweep() {
    for (int i = 0; i < kMaxArrays; ++i) FillPage(pages_[i], kPage, i);
    behind_ = memory_.data() + kMaxArrays * kPage;
    std::fill(behind_, behind_ + kPage, std::byte{0x77});
  }

  std::vector<double> Values(int array) const {
    const auto* begin = reinterpret_cast<const double*>(pages_[array]);
    return {begin, begin + kPage / sizeof(double)};
  }
  static std::vector<double> All(double value) {
    return std::vector<double>(kPage / sizeof(double), value);
  }

  alignas(kPage) std::array<std::byte, (kMaxArrays + 1) * kPage> memory_ = {};
  std::byte* behind_ = nullptr;
  std::byte* const pages_[kMaxArrays] = {memory_.data() + 2 * kPage, memory_.data(),
                                         memory_.data() + kPage};
};

TEST_F(MemorySweep, FillsEachArrayWithItsNumber) {
  EXPECT_EQ(Values(0), All(0));
  EXPECT_EQ(Values(1), All(1));
  EXPECT_EQ(Values(2), All(2));
}

TEST_F(MemorySweep, WritesEveryByteOfThePageAndNoOther) {
  SweepPage(SweepOperation::kWrite, pages_, kPage);

  EXPECT_EQ(Values(0), All(kSweepScalar));
  EXPECT_EQ(Values(1), All(1));
  EXPECT_TRUE(
      std::all_of(behind_, behind_ + kPage, [](std::byte b) { return b == std::byte{0x77}; }));
}

TEST_F(MemorySweep, CopiesTheSecondArrayToTheFirst) {
  SweepPage(SweepOperation::kCopy, pages_, kPage);

  EXPECT_EQ(Values(0), All(1));
  EXPECT_EQ(Values(1), All(1));
}

TEST_F(MemorySweep, TriadAddsTheScaledThirdToTheSecond) {
  SweepPage(SweepOperation::kTriad, pages_, kPage);

  EXPECT_EQ(Values(0), All(1 + kSweepScalar * 2));
  EXPECT_EQ(Values(1), All(1));
  EXPECT_EQ(Values(2), All(2));
}

// Else a part of the page would not be read.
TEST_F(MemorySweep, ReadingDependsOnEveryByte) {
  const uint64_t before = SweepPage(SweepOperation::kRead, pages_, kPage);
  for (size_t i = 0; i < kPage; ++i) {
    pages_[0][i] ^= std::byte{1};
    EXPECT_NE(SweepPage(SweepOperation::kRead, pages_, kPage), before) << "byte " << i;
    pages_[0][i] ^= std::byte{1};
  }
}

TEST_F(MemorySweep, ReadsChangeNothing) {
  SweepPage(SweepOperation::kRead, pages_, kPage);

  EXPECT_EQ(Values(0), All(0));
}

TEST(SweepOperation, HasAsManyArraysAsItsFormula) {
  EXPECT_EQ(NumArrays(SweepOperationOf("read")), 1);
  EXPECT_EQ(NumArrays(SweepOperationOf("write")), 1);
  EXPECT_EQ(NumArrays(SweepOperationOf("copy")), 2);
  EXPECT_EQ(NumArrays(SweepOperationOf("triad")), 3);
}

}  // namespace
}  // namespace pipeyard::load
