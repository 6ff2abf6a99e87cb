// The loops over a pipe that misbehaves on purpose: whatever it does, they end and say what was
// wrong.
#include "workloads/load/transfer_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/mutex.h"
#include "workloads/load/load_threads.h"

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

constexpr int64_t kCapacity = 4096;
// A failing worker ends the window early.
constexpr Nanos kUntilItFails = Seconds(60);

struct Misbehaviour {
  int write_error = 0;          // of the 10th write and all later ones
  int read_error = 0;           // of the 10th read and all later ones
  int64_t lost_per_read = 0;    // bytes that vanish on the way
  int64_t max_write = 1 << 30;  // longer writes are short
  bool ignores_close = false;   // readers sleep on after the write end was closed
  bool ignores_interrupt = false;
};

// Counts bytes; has no content.
class FakePipe {
 public:
  struct Worker {};

  explicit FakePipe(Misbehaviour misbehaviour) : misbehaviour_(misbehaviour) {}

  Worker Attach(int /*worker_index*/) { return {}; }

  int64_t Write(Worker& /*worker*/, int /*pipe*/, const std::byte* /*data*/, size_t size)
      EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (++num_writes_ >= 10 && misbehaviour_.write_error != 0) return -misbehaviour_.write_error;
    while (level_ >= kCapacity && !is_read_end_closed_ && !IsInterrupted()) changed_.Wait(mutex_);
    if (is_read_end_closed_) return -EPIPE;
    if (IsInterrupted()) return -EINTR;
    const int64_t moved =
        std::min({static_cast<int64_t>(size), misbehaviour_.max_write, kCapacity - level_});
    level_ += moved;
    changed_.NotifyAll();
    return moved;
  }

  int64_t Read(Worker& /*worker*/, int /*pipe*/, std::byte* /*data*/, size_t size)
      EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (++num_reads_ >= 10 && misbehaviour_.read_error != 0) return -misbehaviour_.read_error;
    while (level_ == 0 && !IsAtEnd() && !IsInterrupted()) changed_.Wait(mutex_);
    if (level_ == 0) return IsAtEnd() ? 0 : -EINTR;
    const int64_t moved = std::min(static_cast<int64_t>(size), level_);
    level_ -= moved;
    changed_.NotifyAll();
    return std::max<int64_t>(1, moved - misbehaviour_.lost_per_read);
  }

  void CloseWriteEnd(Worker& /*worker*/, int /*pipe*/) EXCLUDES(mutex_) {
    Set(&FakePipe::is_write_end_closed_);
  }
  void CloseReadEnd(Worker& /*worker*/, int /*pipe*/) EXCLUDES(mutex_) {
    Set(&FakePipe::is_read_end_closed_);
  }
  void KeepInChild(const PipeEnds& /*used*/) {}
  void ReleaseInParent() {}
  void Interrupt() EXCLUDES(mutex_) { Set(&FakePipe::is_interrupted_); }
  // Ends what nothing else ends, after the test has seen it hang.
  void Release() EXCLUDES(mutex_) { Set(&FakePipe::is_released_); }

  Counts ReadCounts() const { return {{"fake_calls", "count", 1}}; }

 private:
  void Set(bool FakePipe::*flag) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    this->*flag = true;
    changed_.NotifyAll();
  }
  bool IsAtEnd() const REQUIRES(mutex_) {
    return is_write_end_closed_ && !misbehaviour_.ignores_close;
  }
  bool IsInterrupted() const REQUIRES(mutex_) {
    return is_released_ || (is_interrupted_ && !misbehaviour_.ignores_interrupt);
  }

  const Misbehaviour misbehaviour_;
  Mutex mutex_;
  CondVar changed_;
  int num_writes_ GUARDED_BY(mutex_) = 0;
  int num_reads_ GUARDED_BY(mutex_) = 0;
  int64_t level_ GUARDED_BY(mutex_) = 0;
  bool is_write_end_closed_ GUARDED_BY(mutex_) = false;
  bool is_read_end_closed_ GUARDED_BY(mutex_) = false;
  bool is_interrupted_ GUARDED_BY(mutex_) = false;
  bool is_released_ GUARDED_BY(mutex_) = false;
};

struct Measured {
  Judgement judgement;
  TransferNumbers numbers;
  std::vector<BufferPlacement> placements;

  int64_t CountOf(const std::string& name) const {
    for (const Count& count : numbers.counts) {
      if (count.name == name) return count.value;
    }
    return -1;
  }
};

Measured RunFor(Nanos duration, const Misbehaviour& misbehaviour) {
  TransferParameters parameters;
  parameters.writers = 2;
  parameters.readers = 2;
  parameters.message_bytes = 1000;
  parameters.pipe_bytes = kCapacity;
  parameters.warmup = Nanos(0);
  parameters.duration = duration;
  // Hanging is decided after the drain: short only where the pipe is known to hang.
  LoopTimeouts timeouts;
  if (misbehaviour.ignores_close) timeouts.drain = Milliseconds(50);
  if (misbehaviour.ignores_interrupt) timeouts.abort = Milliseconds(50);
  const auto pipe = std::make_shared<FakePipe>(misbehaviour);
  Measured run;
  run.judgement = RunTransferLoops(parameters, pipe, run.numbers, run.placements, timeouts);
  pipe->Release();
  return run;
}

// Until the window saw something move, or the loops failed: a busy machine may let a short window
// pass.
Measured RunWith(const Misbehaviour& misbehaviour) {
  Nanos duration = Milliseconds(30);
  while (true) {
    Measured run = RunFor(duration, misbehaviour);
    const bool has_moved = run.numbers.latency.count() > 0 && run.numbers.window_bytes > 0;
    if (!run.judgement.ok() || has_moved || duration > Seconds(10)) return run;
    duration *= 4;
  }
}

TEST(TransferLoop, MeasuresAPipeThatWorks) {
  const Measured run = RunWith({});

  ASSERT_TRUE(run.judgement.ok()) << run.judgement.reason_text;
  EXPECT_GT(run.numbers.latency.count(), 0u);
  EXPECT_GT(run.numbers.window_bytes, 0u);
  EXPECT_GE(run.numbers.window, Milliseconds(30));
  EXPECT_EQ(run.placements.size(), 4u);
  EXPECT_EQ(run.CountOf("messages_written"), static_cast<int64_t>(run.numbers.latency.count()));
  EXPECT_EQ(run.CountOf("fake_calls"), 0);  // the difference of two equal readings
}

TEST(TransferLoop, FinishesAMessageThatWasWrittenShort) {
  const Measured run = RunWith({.max_write = 300});

  ASSERT_TRUE(run.judgement.ok()) << run.judgement.reason_text;
  EXPECT_GT(run.CountOf("short_writes"), 0);
}

TEST(TransferLoop, AFailingWriteFailsTheAttempt) {
  const Measured run = RunFor(kUntilItFails, {.write_error = ENOSPC});

  EXPECT_EQ(run.judgement.outcome, v1::OUTCOME_FAILED);
  EXPECT_EQ(run.judgement.reason_code, "write_failed");
  EXPECT_THAT(run.judgement.reason_text, HasSubstr("ENOSPC"));
}

TEST(TransferLoop, AFailingReadIsTheCauseNotTheWritersBrokenPipe) {
  const Measured run = RunFor(kUntilItFails, {.read_error = EIO});

  EXPECT_EQ(run.judgement.reason_code, "read_failed");
  EXPECT_THAT(run.judgement.reason_text, HasSubstr("EIO"));
}

TEST(TransferLoop, LostBytesFailTheAttempt) {
  const Measured run = RunWith({.lost_per_read = 1});

  EXPECT_EQ(run.judgement.outcome, v1::OUTCOME_FAILED);
  EXPECT_EQ(run.judgement.reason_code, "bytes_lost");
}

TEST(TransferLoop, ReadersThatMissTheEndAreInterrupted) {
  const Measured run = RunWith({.ignores_close = true});

  EXPECT_EQ(run.judgement.reason_code, "hung_shutdown");
}

TEST(TransferLoop, ThreadsThatNothingEndsAreLeftBehind) {
  const Measured run = RunWith({.ignores_close = true, .ignores_interrupt = true});

  EXPECT_EQ(run.judgement.reason_code, "hung_shutdown");
  EXPECT_TRUE(run.placements.empty());
}

TEST(LoadThreads, InterruptEndsASystemCall) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<int> error{0};
  LoadThreads threads;
  ASSERT_TRUE(threads
                  .Start("",
                         [&] {
                           char byte;
                           if (::read(ends[0], &byte, 1) < 0) error = errno;
                         })
                  .ok());
  bool has_ended = false;
  while (!has_ended) {
    threads.InterruptSystemCalls();
    has_ended = threads.AwaitEnd(SystemClock().Now() + Milliseconds(5));
  }

  EXPECT_EQ(error, EINTR);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Supervisor, ThePhaseNeverGoesBack) {
  PhaseGate gate = {};
  LoadThreads workers;
  Supervisor supervisor(gate, workers);
  gate.Enter(Phase::kAbort);
  gate.Enter(Phase::kMeasure);

  EXPECT_EQ(gate.Current(), Phase::kAbort);
  EXPECT_TRUE(supervisor.IsAbortedBefore(SystemClock().Now()));
}

TEST(Supervisor, SaysWhenWorkersAreMissing) {
  PhaseGate gate = {};
  LoadThreads workers;
  Supervisor supervisor(gate, workers);
  gate.Arrive();

  EXPECT_TRUE(supervisor.AwaitArrivals(1, Nanos(0)));
  EXPECT_FALSE(supervisor.AwaitArrivals(2, Nanos(0)));
}

}  // namespace
}  // namespace pipeyard::load
