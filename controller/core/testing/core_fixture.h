// A core over a ModelStore and a fake network, all on executors that the test runs: the loop, the
// committer's writer and the readers each on their own, so that a test can hold commits back.
//
// Thread safety: confined to one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "controller/core/core.h"
#include "controller/core/readers.h"
#include "controller/ingest/committer.h"
#include "controller/scheduler/testing/builders.h"
#include "controller/scheduler/testing/model_store.h"
#include "proto/session/fake_transport.h"

namespace pipeyard::core {

// Two compared arms of `repetitions` trials each.
std::string SweepYaml(int repetitions);
v1::SubmitSweepRequest SubmitRequest(uint32_t n, int repetitions);

// The agent's end of a stream, which does only what the test says.
class RawAgent final : public session::StreamHandler<v1::ControllerMessage> {
 public:
  RawAgent(session::Dialer& dialer, const v1::Hello& hello);
  void OnMessage(const v1::ControllerMessage& message) override { received.push_back(message); }
  void OnClosed(const Status& status) override { closed = status; }

  void Accept(const v1::Assign& assign);
  void Finish(const v1::Assign& assign, v1::Outcome outcome);
  void Send(const v1::Frame& frame);
  void Beat();

  // The newest Assign or Ack; nullptr where there was none.
  const v1::Assign* LastAssign() const;
  const v1::Ack* LastAck() const;
  size_t NumAssigns() const;

  std::deque<v1::ControllerMessage> received;
  std::optional<Status> closed;

 private:
  std::unique_ptr<session::AgentStream> stream_;
};

class CoreFixture {
 public:
  CoreFixture();
  ~CoreFixture();

  // Everything that is due now, commits included (RunWithoutCommits: all but the writer).
  void Run();
  void RunWithoutCommits();
  void Advance(Nanos by);

  std::unique_ptr<RawAgent> Attach(uint32_t n);
  // The run's id; fails the test where there is none.
  std::string Submit(uint32_t n, int repetitions = 1);
  // Runs every trial that the agent is given, to the end.
  void WorkOff(RawAgent& agent);

  FakeClock& clock() { return clock_; }
  scheduler::ModelStore& store() { return store_; }
  Core& core() { return *core_; }

 private:
  FakeClock clock_;
  FakeExecutor loop_{clock_};
  FakeExecutor writer_{clock_};
  FakeExecutor* reader_;  // owned by readers_
  // Outlives the sessions of the core, which close its streams when they go.
  session::FakeNetwork network_{loop_, clock_, 1};
  scheduler::ModelStore store_{scheduler::TestUuid(1)};
  IdSource ids_{clock_, 1};
  std::unique_ptr<Readers> readers_;
  std::unique_ptr<ingest::Committer> committer_;
  std::unique_ptr<Core> core_;
};

// Keeps the result of one call.
template <typename T>
struct Answer {
  std::optional<Result<T>> result;
  Reply<T> reply() {
    return [this](Result<T> given) { result = std::move(given); };
  }
  bool ok() const { return result.has_value() && result->ok(); }
  StatusCode code() const {
    return result.has_value() ? result->status().code() : StatusCode::kUnknown;
  }
};

}  // namespace pipeyard::core
