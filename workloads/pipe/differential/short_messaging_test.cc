// Thousands of short messaging runs that must end: two to four pairs of threads, few messages,
// small pipes, with yields and pauses between the calls that the seed decides. A wake-up that gets
// lost leaves a run hanging, which is found by a limit that no healthy run comes near.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "workloads/memory/futex.h"
#include "workloads/memory/testing.h"
#include "workloads/pipe/differential/generator.h"
#include "workloads/pipe/differential/stream.h"
#include "workloads/pipe/engine.h"
#include "workloads/pipe/poll.h"

namespace pipeyard::pipe::differential {
namespace {

#if defined(PIPEYARD_IS_SANITIZED)
constexpr int kRuns = 100;
#else
constexpr int kRuns = 600;
#endif
constexpr int kMaxPairs = 4;
// Without any thread coming to its end; a run takes milliseconds.
constexpr Nanos kPatience = Seconds(60);

struct Case {
  const char* name;
  PageCache page_cache;
  Wakeup wakeup = Wakeup::kWasFull;
  PollWakeup poll_wakeup = PollWakeup::kPollUsage;
  Nanos wait_spin{0};
  bool is_polling = false;  // receivers poll before they read
};

// Lets others run, now and then.
void Disturb(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
    case 1:
      ::sched_yield();
      break;
    case 2:
      for (uint64_t i = random() % 200; i > 0; --i) memory::SpinPause();
      break;
    default:
      break;
  }
}

class MessagingRun {
 public:
  MessagingRun(Engine& engine, const Case& test_case, uint64_t seed)
      : engine_(engine), is_polling_(test_case.is_polling), seed_(seed) {
    std::mt19937_64 random(seed);
    num_pairs_ = 2 + static_cast<int>(random() % (kMaxPairs - 1));
    num_rounds_ = 1 + static_cast<int>(random() % 4);
    message_bytes_ = random() % 4 == 0 ? 1 + random() % 9000 : 1 + random() % 300;
    const uint64_t slots = uint64_t{1} << random() % 3;
    for (int i = 0; i < num_pairs_; ++i) {
      pipes_.push_back(engine.CreatePipe(engine.worker(0), {slots * 4096}).pipe);
      // Every sender holds the write end, and closes it: the receiver reads to the end of file.
      for (int sender = 1; sender < num_pairs_; ++sender) {
        pipes_.back().OpenWriter(engine.worker(0));
      }
    }
  }

  // False: it hung.
  bool Go() {
    std::vector<std::thread> threads;
    for (int i = 0; i < num_pairs_; ++i) {
      threads.emplace_back([this, i] { Send(i); });
      threads.emplace_back([this, i] { Receive(i); });
    }
    const bool has_ended = WaitForEnd();
    if (!has_ended) engine_.Stop();
    for (std::thread& thread : threads) thread.join();
    return has_ended && received_ == Expected();
  }

  std::string Describe() const {
    return std::to_string(num_pairs_) + " pairs, " + std::to_string(num_rounds_) + " rounds of " +
           std::to_string(message_bytes_) + " bytes, received " + std::to_string(received_) +
           " of " + std::to_string(Expected());
  }

 private:
  uint64_t Expected() const {
    return static_cast<uint64_t>(num_pairs_) * static_cast<uint64_t>(num_pairs_) *
           static_cast<uint64_t>(num_rounds_) * message_bytes_;
  }

  bool WaitForEnd() {
    const auto all = static_cast<uint32_t>(2 * num_pairs_);
    for (;;) {
      const uint32_t ended = num_ended_.load();
      if (ended == all) return true;
      if (!memory::FutexWait(&num_ended_, ended, kPatience)) return false;
    }
  }
  void End() {
    ++num_ended_;
    memory::FutexWake(&num_ended_, 1);
  }

  void Send(int self) {
    std::mt19937_64 random(ProgramSeed(seed_, static_cast<uint64_t>(self)));
    Worker& worker = engine_.worker(self);
    for (int round = 0; round < num_rounds_; ++round) {
      for (Pipe& pipe : pipes_) {
        Disturb(random);
        pipe.Write(worker, StreamAt(0), message_bytes_);
      }
    }
    for (Pipe& pipe : pipes_) {
      Disturb(random);
      pipe.CloseWriter(worker);
    }
    End();
  }

  void Receive(int self) {
    std::mt19937_64 random(ProgramSeed(~seed_, static_cast<uint64_t>(self)));
    Worker& worker = engine_.worker(kMaxPairs + self);
    Pipe& pipe = pipes_[static_cast<size_t>(self)];
    std::vector<char> buffer(message_bytes_ + 100);
    for (;;) {
      Disturb(random);
      if (is_polling_) {
        PollEntry entry{pipe, PipeEnd::kRead, kPollIn, 0};
        if (Poll(worker, {&entry, 1}, Nanos(-1)) < 0) break;
      }
      const IoResult result = pipe.Read(worker, buffer.data(), 1 + random() % buffer.size());
      if (!result.ok() || result.bytes == 0) break;
      received_ += static_cast<uint64_t>(result.bytes);
    }
    pipe.CloseReader(worker);
    End();
  }

  Engine& engine_;
  const bool is_polling_;
  const uint64_t seed_;
  int num_pairs_ = 0;
  int num_rounds_ = 0;
  size_t message_bytes_ = 0;
  std::vector<Pipe> pipes_;
  std::atomic<uint32_t> num_ended_{0};
  std::atomic<uint64_t> received_{0};
};

class ShortMessaging : public ::testing::TestWithParam<Case> {};

TEST_P(ShortMessaging, AlwaysEnds) {
  const uint64_t seed = memory::TestSeed(61);
  EngineSetup setup;
  setup.config.page_cache = GetParam().page_cache;
  setup.config.wakeup = GetParam().wakeup;
  setup.config.poll_wakeup = GetParam().poll_wakeup;
  setup.config.wait_spin = GetParam().wait_spin;
  setup.worker_cpus.assign(2 * kMaxPairs, 0);
  setup.page_bytes = 4096;
  setup.extra_pipes = kMaxPairs;
  setup.extra_slots = kMaxPairs * 16;
  const numa::Topology host =
      *numa::Topology::Make({{0, {0}, int64_t{1} << 30, {10}}}, {0}, /*is_emulated=*/false);
  const std::unique_ptr<Engine> engine = *Engine::Create(setup, host);

  for (int i = 0; i < kRuns; ++i) {
    MessagingRun run(*engine, GetParam(), ProgramSeed(seed, static_cast<uint64_t>(i)));
    ASSERT_TRUE(run.Go()) << "run " << i << ": " << run.Describe();
  }
  const Status status = engine->CheckConservation();
  EXPECT_TRUE(status.ok()) << status.ToString();
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& param) { return param.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Pipes, ShortMessaging,
    ::testing::Values(Case{"TwoPage", PageCache::kTwoPage},
                      Case{"OnePageAlwaysWaking", PageCache::kOnePage, Wakeup::kAlways},
                      Case{"PreallocSpinning", PageCache::kPrealloc, Wakeup::kWasFull,
                           PollWakeup::kPollUsage, Microseconds(20)},
                      Case{"PoolPolling", PageCache::kPool, Wakeup::kWasFull,
                           PollWakeup::kPollUsage, Nanos(0), true},
                      Case{"PreallocV1PollingNoPollWakeup", PageCache::kPreallocV1,
                           Wakeup::kWasFull, PollWakeup::kNone, Nanos(0), true}),
    NameOfCase);

}  // namespace
}  // namespace pipeyard::pipe::differential
