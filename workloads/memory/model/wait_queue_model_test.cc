// No wake-up is lost: the wait queue's own sources under every order of their steps, in the
// protocol of a pipe's readers and writers (kernel-mechanisms.md A2 to A5) over a ring of tokens.
// Planted faults show that a lost wake-up would be found.

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "workloads/memory/model/ring_model.h"
#include "workloads/memory/model/scheduler.h"

namespace pipeyard::memory::model {
namespace {

// What the threads of a scenario do, by name in the tests below.
struct Outline {
  uint32_t capacity = 1;
  uint32_t writers = 1;
  std::function<std::vector<std::function<void()>>(RingModel&)> threads;
  std::function<bool(const SharedRing&)> is_right;
};

ExplorationResult Run(const Outline& outline, Planted planted) {
  RingModel ring(outline.capacity, outline.writers, planted);
  Scenario scenario;
  scenario.reset = [&] { ring.Reset(); };
  scenario.threads = outline.threads(ring);
  scenario.check = [&]() -> std::string {
    if (!ring.ring().readers.IsEmpty() || !ring.ring().writers.IsEmpty()) {
      return "somebody is still queued";
    }
    return outline.is_right(ring.ring()) ? "" : "the counts are wrong";
  };
  scenario.memory = ring.memory();
  return Explore(scenario);
}

void ExpectNoFault(const Outline& outline) {
  const ExplorationResult result = Run(outline, Planted::kNone);

  EXPECT_EQ(result.fault, "");
  EXPECT_TRUE(result.is_complete);
  EXPECT_GT(result.num_states, 10u);
  std::cout << result.num_states << " states, " << result.num_runs << " runs" << std::endl;
}

void ExpectLostWakeUp(const Outline& outline, Planted planted) {
  const ExplorationResult result = Run(outline, planted);

  EXPECT_NE(result.fault.find("sleeps for ever"), std::string::npos) << result.fault;
}

Outline TwoReadersOneWriter() {
  return {.capacity = 2,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{
                    [&] { ring.Read(0); }, [&] { ring.Read(1); }, [&] { ring.Write(2, 2); }};
              },
          .is_right = [](const SharedRing& ring) { return ring.taken == 2; }};
}

Outline ThreeReadersAtTheEndOfFile() {
  return {.capacity = 1,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{
                    [&] { ring.Read(0); }, [&] { ring.Read(1); }, [&] { ring.Read(2); },
                    [&] {
                      ring.Write(3, 1);
                      ring.CloseWriter();
                    }};
              },
          .is_right = [](const SharedRing& ring) { return ring.taken == 1 && ring.ends == 2; }};
}

Outline TwoWritersOneReader() {
  return {.capacity = 1,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{[&] {
                                                            for (int i = 0; i < 4; ++i)
                                                              ring.Read(0);
                                                          },
                                                          [&] { ring.Write(1, 2); },
                                                          [&] { ring.Write(2, 2); }};
              },
          .is_right = [](const SharedRing& ring) { return ring.taken == 4; }};
}

Outline TwoReadersTwoWriters() {
  return {.capacity = 1,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{
                    [&] { ring.Read(0); }, [&] { ring.Read(1); }, [&] { ring.Write(2, 1); },
                    [&] { ring.Write(3, 1); }};
              },
          .is_right = [](const SharedRing& ring) { return ring.taken == 2; }};
}

Outline APollThatGivesUp() {
  return {.capacity = 1,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{[&] {
                                                            ring.PollReadable(0, true);
                                                            ring.Read(0);
                                                          },
                                                          [&] { ring.Read(1); },
                                                          [&] { ring.Write(2, 2); }};
              },
          .is_right = [](const SharedRing& ring) { return ring.polled == 1 && ring.taken == 2; }};
}

Outline AnInterruptedReader() {
  return {.capacity = 1,
          .writers = 2,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{[&] {
                                                            // Once more where that was a signal.
                                                            if (!ring.Read(0)) ring.Read(0);
                                                          },
                                                          [&] { ring.InterruptThread(0); },
                                                          [&] { ring.Write(2, 1); }};
              },
          // A signal that came after the token is still there for a later wait.
          .is_right = [](const SharedRing& ring) { return ring.taken == 1 && ring.breaks <= 1; }};
}

Outline APollerAndAReader() {
  return {.capacity = 1,
          .threads =
              [](RingModel& ring) {
                return std::vector<std::function<void()>>{[&] { ring.PollReadable(0); },
                                                          [&] { ring.PollReadable(1); },
                                                          [&] {
                                                            ring.Write(2, 1);
                                                            ring.CloseWriter();
                                                          },
                                                          [&] { ring.Read(3); }};
              },
          .is_right = [](const SharedRing& ring) { return ring.polled == 2 && ring.taken == 1; }};
}

TEST(WaitQueueModel, TwoReadersGetWhatOneWriterWrites) { ExpectNoFault(TwoReadersOneWriter()); }

TEST(WaitQueueModel, EveryReaderSeesTheEndOfFile) { ExpectNoFault(ThreeReadersAtTheEndOfFile()); }

TEST(WaitQueueModel, TwoWritersGetRoomFromOneReader) { ExpectNoFault(TwoWritersOneReader()); }

TEST(WaitQueueModel, TwoReadersAndTwoWritersMeet) { ExpectNoFault(TwoReadersTwoWriters()); }

TEST(WaitQueueModel, APollThatGivesUpTakesNobodysWakeUp) { ExpectNoFault(APollThatGivesUp()); }

TEST(WaitQueueModel, AnInterruptionAndAWakeUpLoseNothing) { ExpectNoFault(AnInterruptedReader()); }

TEST(WaitQueueModel, PollersAndAReaderAreAllReached) { ExpectNoFault(APollerAndAReader()); }

TEST(WaitQueueModel, FindsAWakeUpBeforeTheTokenIsVisible) {
  ExpectLostWakeUp(TwoReadersOneWriter(), Planted::kWakesBeforePublishing);
}

TEST(WaitQueueModel, FindsASleepWithoutLookingAgain) {
  ExpectLostWakeUp(TwoReadersOneWriter(), Planted::kSleepsWithoutRecheck);
}

TEST(WaitQueueModel, FindsThatOnlyOneReaderIsToldOfTheEnd) {
  ExpectLostWakeUp(ThreeReadersAtTheEndOfFile(), Planted::kWakesOneOnClose);
}

TEST(WaitQueueModel, FindsABrokenChain) {
  ExpectLostWakeUp(TwoReadersOneWriter(), Planted::kNoChain);
}

TEST(WaitQueueModel, FindsTheTornReadOfHeadAndTail) {
  ExpectLostWakeUp(TwoWritersOneReader(), Planted::kTornRead);
}

TEST(WaitQueueModel, FindsAFutexCallThatIsOwed) {
  ExpectLostWakeUp(TwoReadersOneWriter(), Planted::kForgetsFlush);
}

TEST(WaitQueueModel, FindsAPollThatLooksBeforeItJoins) {
  ExpectLostWakeUp(APollerAndAReader(), Planted::kPollsBeforeJoining);
}

}  // namespace
}  // namespace pipeyard::memory::model
