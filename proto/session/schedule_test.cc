// The whole protocol between model agents and a model controller over a network that delays,
// breaks, doubles and reorders, with either side restarting at any time. At the end the links heal
// and everything must be done. One seed gives one history; PIPEYARD_SEED runs that seed alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"
#include "proto/session/schedule_model.h"

namespace pipeyard::session {
namespace {

void RunSeeds(uint64_t first, uint64_t last, const NetworkFaults& faults, bool keeps_order) {
  SetLogLevel(LogLevel::kError);
  if (const char* const seed = std::getenv("PIPEYARD_SEED")) {
    first = last = std::strtoull(seed, nullptr, 10);
  }
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("PIPEYARD_SEED={}", seed));
    World(seed, faults, keeps_order).Run();
    if (::testing::Test::HasFailure()) break;
  }
  SetLogLevel(LogLevel::kInfo);
}

TEST(Schedule, EveryFrameIsStoredOnceOverASlowNetwork) {
  NetworkFaults faults;
  faults.min_delay = Milliseconds(1);
  faults.max_delay = Milliseconds(800);
  RunSeeds(1, 100, faults, true);
}

TEST(Schedule, EveryFrameIsStoredOnceWhileLinksBreakBeforeAndAfterReceipt) {
  NetworkFaults faults;
  faults.max_delay = Milliseconds(200);
  faults.break_before_receipt = 0.04;
  faults.break_after_receipt = 0.04;
  RunSeeds(1001, 1150, faults, true);
}

TEST(Schedule, EveryFrameIsStoredOnceWhileEitherEndLearnsLateOfABrokenLink) {
  NetworkFaults faults;
  faults.max_delay = Milliseconds(50);
  faults.break_before_receipt = 0.03;
  faults.break_after_receipt = 0.03;
  faults.max_notice_delay = Seconds(15);
  RunSeeds(2001, 2150, faults, true);
}

TEST(Schedule, EveryFrameIsStoredOnceEvenIfMessagesAreDoubledAndReordered) {
  NetworkFaults faults;
  faults.max_delay = Milliseconds(100);
  faults.break_before_receipt = 0.01;
  faults.break_after_receipt = 0.01;
  faults.duplicate = 0.05;
  faults.reorder = 0.05;
  RunSeeds(3001, 3150, faults, false);
}

}  // namespace
}  // namespace pipeyard::session
