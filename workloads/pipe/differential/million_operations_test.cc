// Ten million random operations in all, of one actor at a time, on the kernel's pipes and on the
// engine's: a million for each page cache, as this process sees it and as one without privileges
// does. The numbers are smaller where a sanitizer or the lack of optimization makes each slower.

#include <gtest/gtest.h>

#include "workloads/memory/testing.h"
#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

#if defined(PIPEYARD_IS_SANITIZED)
constexpr uint64_t kOperations = 50'000;
#elif !defined(__OPTIMIZE__)
constexpr uint64_t kOperations = 200'000;
#else
constexpr uint64_t kOperations = 1'000'000;
#endif

struct Case {
  const char* name;
  PageCache page_cache;
  bool is_unprivileged;
  Wakeup wakeup = Wakeup::kWasFull;
  PollWakeup poll_wakeup = PollWakeup::kPollUsage;
};

class MillionOperations : public ::testing::TestWithParam<Case> {};

TEST_P(MillionOperations, AgreeWithTheKernel) {
  const uint64_t seed = memory::TestSeed(31);
  RunSettings settings;
  settings.page_cache = GetParam().page_cache;
  settings.is_unprivileged = GetParam().is_unprivileged;
  settings.wakeup = GetParam().wakeup;
  settings.poll_wakeup = GetParam().poll_wakeup;

  const Result<std::string> difference =
      RunAs(settings.is_unprivileged ? Role::kUnprivileged : Role::kAsIs, [&] {
        const ComparisonReport report = Compare(settings, MakeEngineSubject, seed, kOperations);
        return report.difference;
      });

  ASSERT_TRUE(difference.ok()) << difference.status().ToString();
  EXPECT_EQ(*difference, "");
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& param) { return param.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Differential, MillionOperations,
    ::testing::Values(
        Case{"TwoPage", PageCache::kTwoPage, false},
        Case{"TwoPageUnprivileged", PageCache::kTwoPage, true},
        Case{"OnePage", PageCache::kOnePage, false, Wakeup::kAlways},
        Case{"OnePageUnprivileged", PageCache::kOnePage, true, Wakeup::kAlways},
        Case{"PreallocV1", PageCache::kPreallocV1, false, Wakeup::kWasFull, PollWakeup::kNone},
        Case{"PreallocV1Unprivileged", PageCache::kPreallocV1, true},
        Case{"Prealloc", PageCache::kPrealloc, false, Wakeup::kWasFull, PollWakeup::kEdgeConsumers},
        Case{"PreallocUnprivileged", PageCache::kPrealloc, true},
        Case{"Pool", PageCache::kPool, false},
        Case{"PoolUnprivileged", PageCache::kPool, true, Wakeup::kAlways, PollWakeup::kNone}),
    NameOfCase);

}  // namespace
}  // namespace pipeyard::pipe::differential
