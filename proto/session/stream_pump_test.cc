#include "proto/session/stream_pump.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"

namespace pipeyard::session {
namespace {

// Messages are plain numbers here: the pump does not look into them.
using Pump = StreamPump<int, int>;
using Strings = std::vector<std::string>;

// Writes down what the pump asks of it; the test plays the reactions.
class ScriptedCall final : public Pump::Call {
 public:
  void StartRead(int* into) override {
    log.push_back("read");
    incoming = into;
  }
  void StartWrite(const int* message) override {
    log.push_back("write " + std::to_string(*message));
  }
  void Cancel() override { log.push_back("cancel"); }
  void End(const Status& status) override { log.push_back("end " + status.ToString()); }

  Strings log;
  int* incoming = nullptr;
};

class StreamPumpTest : public ::testing::Test, public StreamHandler<int> {
 protected:
  void OnMessage(const int& message) override {
    call_.log.push_back("message " + std::to_string(message));
    if (closes_in_handler_) pump_->Close(Cancelled("enough"));
  }
  void OnClosed(const Status& status) override {
    call_.log.push_back("closed " + status.ToString());
  }
  void Dialing() { pump_ = std::make_shared<Pump>(executor_, call_, Nanos(0)); }
  void Arrive(int message) {
    *call_.incoming = message;
    pump_->OnReadDone(true);
  }
  const Strings& log() const { return call_.log; }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  ScriptedCall call_;
  bool closes_in_handler_ = false;
  std::shared_ptr<Pump> pump_ = std::make_shared<Pump>(executor_, call_, kDrainTimeout);
};

TEST_F(StreamPumpTest, TheNextReadWaitsForTheOwner) {
  pump_->Start(*this);
  Arrive(1);
  EXPECT_EQ(log(), Strings({"read"}));

  executor_.RunUntilIdle();

  EXPECT_EQ(log(), Strings({"read", "message 1", "read"}));
}

TEST_F(StreamPumpTest, TheNextWriteWaitsForTheLastOneWhateverArrives) {
  pump_->Start(*this);
  pump_->Send(1);
  pump_->Send(2);
  Arrive(7);  // such as the acknowledgement of 1
  executor_.RunUntilIdle();
  EXPECT_EQ(log(), Strings({"read", "write 1", "message 7", "read"}));
  EXPECT_EQ(pump_->num_unsent(), 2u);

  pump_->OnWriteDone(true);

  EXPECT_EQ(log().back(), "write 2");
  EXPECT_EQ(pump_->num_unsent(), 1u);
}

TEST_F(StreamPumpTest, CloseDeliversWhatWasSentThenTheStatus) {
  pump_->Start(*this);
  pump_->Send(1);
  pump_->Send(2);
  pump_->Close(Aborted("replaced"));
  pump_->Send(3);
  pump_->OnWriteDone(true);
  EXPECT_EQ(log(), Strings({"read", "write 1", "write 2"}));

  pump_->OnWriteDone(true);
  pump_->OnDone(Unavailable("transport"));
  executor_.RunUntilIdle();

  EXPECT_EQ(log(), Strings({"read", "write 1", "write 2", "end replaced [ABORTED]",
                            "closed replaced [ABORTED]"}));
}

TEST_F(StreamPumpTest, APeerThatDoesNotReadIsCanceledAfterTheDrainTimeout) {
  pump_->Start(*this);
  pump_->Send(1);
  pump_->Close(Aborted("replaced"));

  executor_.Advance(kDrainTimeout);
  EXPECT_EQ(log(), Strings({"read", "write 1", "cancel"}));
  pump_->OnCancel();
  pump_->OnWriteDone(false);

  EXPECT_EQ(log().back(), "end replaced [ABORTED]");
}

TEST_F(StreamPumpTest, TheDialingEndCancelsAtOnce) {
  Dialing();
  pump_->Start(*this);
  pump_->Send(1);
  pump_->Send(2);

  pump_->Close(Cancelled("stop"));
  EXPECT_EQ(log(), Strings({"read", "write 1", "cancel"}));
  pump_->OnReadDone(false);
  pump_->OnWriteDone(false);

  EXPECT_EQ(log().back(), "end stop [CANCELLED]");
}

TEST_F(StreamPumpTest, TheEndWaitsForTheWriteInFlight) {
  pump_->Start(*this);
  pump_->Send(1);
  pump_->OnReadDone(false);
  EXPECT_EQ(log(), Strings({"read", "write 1"}));

  pump_->OnWriteDone(false);

  EXPECT_EQ(log().back(), "end the peer ended the stream [UNAVAILABLE]");
}

TEST_F(StreamPumpTest, AFailedWriteDoesNotHideWhatThePeerSaidBefore) {
  Dialing();
  pump_->Start(*this);
  pump_->Send(1);
  pump_->Send(2);
  pump_->OnWriteDone(false);
  Arrive(9);  // such as the reason of a refusal
  executor_.RunUntilIdle();
  EXPECT_EQ(log(), Strings({"read", "write 1", "message 9", "read"}));

  pump_->OnReadDone(false);
  pump_->OnDone(InvalidArgument("why"));
  executor_.RunUntilIdle();

  EXPECT_EQ(log().back(), "closed why [INVALID_ARGUMENT]");
}

TEST_F(StreamPumpTest, EndsOnceHoweverManyReactionsSayTheSame) {
  pump_->Start(*this);
  pump_->OnReadDone(false);
  pump_->OnCancel();
  pump_->Close(Cancelled("too"));
  executor_.Advance(Minutes(1));

  EXPECT_EQ(log(), Strings({"read", "end the peer ended the stream [UNAVAILABLE]"}));
}

TEST_F(StreamPumpTest, AMessageThatWasReadBeforeCloseIsNotHandedOver) {
  pump_->Start(*this);
  Arrive(1);
  pump_->Close(Cancelled("stop"));
  executor_.RunUntilIdle();

  EXPECT_EQ(log(), Strings({"read", "end stop [CANCELLED]"}));
}

TEST_F(StreamPumpTest, MayBeClosedInsideTheHandler) {
  closes_in_handler_ = true;
  pump_->Start(*this);
  Arrive(1);
  executor_.RunUntilIdle();

  EXPECT_EQ(log(), Strings({"read", "message 1", "end enough [CANCELLED]"}));
}

TEST_F(StreamPumpTest, TheHandlerHearsNothingOnceTheStreamWasDropped) {
  pump_->Start(*this);
  Arrive(1);
  pump_->Abandon();
  pump_->OnDone(Status::Ok());
  executor_.RunUntilIdle();

  EXPECT_EQ(log(), Strings({"read", "end the stream was dropped [CANCELLED]"}));
}

TEST_F(StreamPumpTest, AStreamThatWasNeverStartedEndsToo) {
  pump_->Abandon();

  EXPECT_EQ(log(), Strings({"end the stream was dropped [CANCELLED]"}));
}

// A call whose reactions come from a thread of its own, as fast as they can, and which is broken at
// a random moment. Counts every breach of what a callback transport demands.
class RacingCall final : public Pump::Call {
 public:
  RacingCall() {
    thread_ = std::thread([this] { React(); });
  }
  ~RacingCall() override { thread_.join(); }
  void Attach(std::shared_ptr<Pump> pump) {
    MutexLock lock(mutex_);
    pump_ = std::move(pump);
    changed_.NotifyAll();
  }
  // From now on operations fail.
  void Break() {
    MutexLock lock(mutex_);
    is_broken_ = true;
    changed_.NotifyAll();
  }
  int num_breaches() const { return num_breaches_; }
  int num_ends() const { return num_ends_; }

 private:
  void StartRead(int* into) override {
    MutexLock lock(mutex_);
    if (is_reading_ || num_ends_ > 0) ++num_breaches_;
    is_reading_ = true;
    incoming_ = into;
    changed_.NotifyAll();
  }
  void StartWrite(const int* message) override {
    MutexLock lock(mutex_);
    if (is_writing_ || num_ends_ > 0 || *message != next_written_++) ++num_breaches_;
    is_writing_ = true;
    changed_.NotifyAll();
  }
  void Cancel() override {
    if (num_ends_ > 0) ++num_breaches_;
    Break();
  }
  void End(const Status&) override {
    MutexLock lock(mutex_);
    if (is_writing_) ++num_breaches_;
    ++num_ends_;
    changed_.NotifyAll();
  }
  void React() {
    std::shared_ptr<Pump> pump;
    for (;;) {
      bool read = false, write = false, ok = false, done = false;
      {
        MutexLock lock(mutex_);
        while (pump_ == nullptr || !(is_reading_ || is_writing_ || num_ends_ > 0)) {
          changed_.Wait(mutex_);
        }
        pump = pump_;
        ok = !is_broken_;
        if (is_writing_) {
          write = true;
          is_writing_ = false;
        } else if (is_reading_) {
          read = true;
          if (num_ends_ > 0) ok = false;
          is_reading_ = false;
          if (ok) ++*incoming_;
        } else {
          done = true;
          pump_.reset();
        }
      }
      if (write) pump->OnWriteDone(ok);
      if (read) pump->OnReadDone(ok);
      if (done) {
        pump->OnDone(Unavailable("over"));
        return;
      }
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Pump> pump_ GUARDED_BY(mutex_);
  bool is_broken_ GUARDED_BY(mutex_) = false;
  bool is_reading_ GUARDED_BY(mutex_) = false;
  bool is_writing_ GUARDED_BY(mutex_) = false;
  int* incoming_ GUARDED_BY(mutex_) = nullptr;
  int next_written_ GUARDED_BY(mutex_) = 0;
  std::atomic<int> num_breaches_{0};
  std::atomic<int> num_ends_{0};
  std::thread thread_;
};

class CountingHandler final : public StreamHandler<int> {
 public:
  void OnMessage(const int&) override {
    ++num_messages;
    if (num_closed > 0) ++num_late;
  }
  void OnClosed(const Status&) override {
    ++num_closed;
    MutexLock lock(mutex_);
    is_closed_ = true;
    closed_.NotifyAll();
  }
  void WaitClosed() {
    MutexLock lock(mutex_);
    while (!is_closed_) closed_.Wait(mutex_);
  }
  std::atomic<int> num_messages{0};
  std::atomic<int> num_closed{0};
  std::atomic<int> num_late{0};

 private:
  Mutex mutex_;
  CondVar closed_;
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

TEST(StreamPumpRace, KeepsTheRulesWhenItIsClosedBrokenAndWrittenAtOnce) {
  for (int round = 0; round < 60; ++round) {
    SerialExecutor executor("owner");
    RacingCall call;
    CountingHandler handler;
    auto pump = std::make_shared<Pump>(executor, call, round % 2 == 0 ? Nanos(0) : Seconds(5));
    call.Attach(pump);
    executor.Post([&] {
      pump->Start(handler);
      for (int i = 0; i < 50 + 7 * round; ++i) pump->Send(i);
      if (round % 3 != 0) pump->Close(Cancelled("done"));
    });
    if (round % 3 != 1) call.Break();

    handler.WaitClosed();
    executor.Stop();

    EXPECT_EQ(call.num_breaches(), 0);
    EXPECT_EQ(call.num_ends(), 1);
    EXPECT_EQ(handler.num_closed, 1);
    EXPECT_EQ(handler.num_late, 0);
  }
}

}  // namespace
}  // namespace pipeyard::session
