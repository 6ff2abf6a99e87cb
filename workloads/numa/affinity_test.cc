#include "workloads/numa/affinity.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace pipeyard::numa {
namespace {

TEST(Affinity, IsThatOfTheThreadAlone) {
  const Result<std::vector<CpuId>> before = GetAffinity();
  ASSERT_TRUE(before.ok());
  ASSERT_FALSE(before->empty());
  std::vector<CpuId> held;
  std::thread([&] {
    ASSERT_EQ(SetAffinity({before->back()}), 0);
    held = GetAffinity().value();
  }).join();

  EXPECT_EQ(held, std::vector<CpuId>{before->back()});
  EXPECT_EQ(GetAffinity().value(), *before);
}

TEST(Affinity, RefusesNoCpuAtAll) { EXPECT_EQ(SetAffinity({}), EINVAL); }

}  // namespace
}  // namespace pipeyard::numa
