// Sizes tried one by one, where random programs only pass: writes of one size until the pipe is
// full, and every kind of second write behind a first one that was read in part.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "workloads/pipe/differential/comparison.h"

namespace pipeyard::pipe::differential {
namespace {

// Of a pipe as it is made.
constexpr uint32_t kSlots = 16;

class SizeSweeps : public ::testing::TestWithParam<PageCache> {
 protected:
  void Do(Action action, uint8_t file, uint32_t value = 0) {
    program_.operations.push_back({action, 0, file, value});
  }
  // What differed.
  std::string Run() {
    program_.settings = {{"page_cache", std::string(PageCacheName(GetParam()))}};
    return Replay(program_, MakeEngineSubject);
  }
  static uint32_t PipeBytes() { return kSlots * static_cast<uint32_t>(::sysconf(_SC_PAGESIZE)); }

  Program program_;
};

TEST_P(SizeSweeps, WritesOfEverySizeFillThePipeAlike) {
  for (uint32_t size = 1; size < 9000; size += size < 130 ? 43 : 397) {
    Do(Action::kCreate, 0, 1);
    for (uint32_t written = 0; written <= PipeBytes(); written += size) {
      Do(Action::kWrite, 1, size);
    }
    Do(Action::kClose, 0);
    Do(Action::kClose, 1);
  }

  EXPECT_EQ(Run(), "");
}

TEST_P(SizeSweeps, TheSecondWriteMergesAlike) {
  Do(Action::kCreate, 0, 1);
  for (uint32_t first = 1; first <= 4200; first += 311) {
    for (uint32_t read = 0; read < first; read += 1 + first / 3) {
      for (uint32_t second = 1; second <= 8300; second += 457) {
        Do(Action::kWrite, 1, first);
        Do(Action::kRead, 0, read);
        Do(Action::kWrite, 1, second);
        // A short write tells how many slots are free.
        Do(Action::kWrite, 1, PipeBytes());
        Do(Action::kRead, 0, PipeBytes());
      }
    }
  }

  EXPECT_EQ(Run(), "");
}

std::string NameOfCache(const ::testing::TestParamInfo<PageCache>& cache) {
  std::string name(PageCacheName(cache.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Differential, SizeSweeps,
                         ::testing::Values(PageCache::kTwoPage, PageCache::kOnePage,
                                           PageCache::kPreallocV1, PageCache::kPrealloc,
                                           PageCache::kPool),
                         NameOfCache);

}  // namespace
}  // namespace pipeyard::pipe::differential
