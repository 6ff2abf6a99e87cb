// A controller, an agent and a raw peer around the real edge, each with an executor of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "proto/grpc/agent_channel.h"
#include "proto/grpc/agent_server.h"
#include "proto/grpc/endpoint.h"
#include "proto/session/agent_session.h"
#include "proto/session/messages.h"
#include "proto/session/session_registry.h"

namespace pipeyard::grpc_edge {

inline constexpr Nanos kLongWait = Seconds(30);

// Runs `task` on the executor and waits for it.
inline void RunOn(Executor& executor, const std::function<void()>& task) {
  Mutex mutex;
  CondVar done;
  bool is_done = false;
  executor.Post([&] {
    task();
    MutexLock lock(mutex);
    is_done = true;
    done.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!is_done) done.Wait(mutex);
}

// Words in order of their coming; WaitFor() is the only way that these tests wait.
class EventLog {
 public:
  void Add(const std::string& word) {
    MutexLock lock(mutex_);
    words_.push_back(word);
    changed_.NotifyAll();
  }
  // True once `word` was added `times` times; false after a wait that only a hang can need.
  bool WaitFor(const std::string& word, int times = 1) {
    const MonotonicTime deadline = SystemClock().Now() + kLongWait;
    MutexLock lock(mutex_);
    while (std::count(words_.begin(), words_.end(), word) < times) {
      const Nanos left = deadline - SystemClock().Now();
      if (left <= Nanos(0)) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }
  int Count(const std::string& word) {
    MutexLock lock(mutex_);
    return static_cast<int>(std::count(words_.begin(), words_.end(), word));
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> words_;
};

// A controller that commits frames into memory.
class TestController final : public session::RegistryEvents, public session::HostDirectory {
 public:
  TestController(const std::string& store_id, uint64_t epoch, const std::string& address) {
    session::RegistryOptions options;
    options.store_id = store_id;
    options.epoch = epoch;
    options.session.max_unacked_frames = 4;
    registry_.emplace(executor_, SystemClock(), *this, *this, options);
    edge_.emplace(executor_, *registry_);
    grpc::Service* const services[] = {&edge_->service()};
    Result<std::unique_ptr<Server>> server = BuildServer({address, false}, services);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    if (server.ok()) server_ = std::move(server).value();
  }
  ~TestController() override { Stop(); }

  void Stop() {
    if (server_ == nullptr) return;
    RunOn(executor_, [this] { registry_->Shutdown(Unavailable("the controller is stopping")); });
    server_->Shutdown(Seconds(5));
    server_.reset();
    executor_.Stop();
  }

  std::string address() const { return server_->address(); }
  EventLog& log() { return log_; }
  void Assign(const std::string& agent_id, const std::string& attempt_id) {
    RunOn(executor_, [&] {
      v1::Assign assign;
      assign.set_attempt_id(attempt_id);
      assign.set_run_id(attempt_id);
      assign.set_trial_timeout_ns(1);
      assign.mutable_variant()->set_workload("transfer");
      assign.mutable_variant()->set_target("kernel");
      assign.mutable_variant()->set_variant_id("0123456789abcdef");
      registry_->SendAssign(agent_id, assign);
    });
  }
  // How often each frame was received; for use after Stop().
  const std::map<uint64_t, int>& received() const { return received_; }
  void AckNothing() { acks_ = false; }

 private:
  std::optional<std::string> HostIdOfName(const std::string&) const override {
    return std::nullopt;
  }
  bool IsRetired(const std::string&) const override { return false; }
  void OnAgentAttached(const std::string&, const v1::Hello&) override { log_.Add("attached"); }
  void OnAgentDetached(const std::string&, const Status&) override { log_.Add("detached"); }
  void OnAccepted(const std::string&, const v1::Accepted&) override { log_.Add("accepted"); }
  void OnRefused(const std::string&, const v1::Refused&) override { log_.Add("refused"); }
  void OnFrame(const std::string& agent_id, const v1::Frame& frame) override {
    ++received_[frame.sequence()];
    log_.Add("frame");
    if (acks_) registry_->SendAck(agent_id, frame.attempt_id(), frame.sequence());
  }
  void OnHeartbeat(const std::string&, const v1::Heartbeat&) override { log_.Add("heartbeat"); }

  SerialExecutor executor_{"controller"};
  EventLog log_;
  std::map<uint64_t, int> received_;
  bool acks_ = true;
  std::optional<session::SessionRegistry> registry_;
  std::optional<AgentServer> edge_;
  std::unique_ptr<Server> server_;
};

// An agent that holds one attempt of `num_frames` frames once it is assigned.
class TestAgent final : public session::AttemptSource, public session::AgentEvents {
 public:
  TestAgent(const std::string& address, uint64_t num_frames, size_t frame_bytes,
            const std::string& name = "host-1")
      : num_frames_(num_frames), frame_bytes_(frame_bytes), dialer_(executor_, address) {
    v1::Hello hello;
    hello.set_agent_id(id_);
    hello.set_boot_id(ids_.Next());
    hello.set_instance_id(ids_.Next());
    hello.set_name(name);
    hello.set_agent_version("test");
    session::AgentSessionOptions options;
    options.backoff_max = Milliseconds(400);
    session_.emplace(executor_, SystemClock(), dialer_, *this, *this, hello, options);
    RunOn(executor_, [this] { session_->Start(); });
  }
  ~TestAgent() override {
    RunOn(executor_, [this] { session_->Stop(); });
    executor_.Stop();
  }

  const std::string& id() const { return id_; }
  EventLog& log() { return log_; }
  void StartSecondSession() {
    RunOn(executor_, [this] {
      session_->Stop();
      session_->Start();
    });
  }

 private:
  std::vector<Held> HeldAttempts() override {
    if (!held_.has_value()) return {};
    return {*held_};
  }
  Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) override {
    v1::Frame frame;
    frame.set_store_id(held_->attempt.store_id());
    frame.set_attempt_id(attempt_id);
    frame.set_sequence(sequence);
    frame.add_outputs()->set_stream("stdout");
    frame.mutable_outputs(0)->set_data(std::string(frame_bytes_, 'x'));
    if (sequence == num_frames_) {
      frame.set_is_final(true);
      frame.mutable_end()->set_outcome(v1::OUTCOME_OK);
      frame.mutable_end()->set_boot_id(attempt_id);
    }
    return frame;
  }
  void OnAttached(const v1::Welcome&) override { log_.Add("attached"); }
  void OnDetached(const Status& why, Nanos) override {
    log_.Add("detached");
    log_.Add(StatusCodeName(why.code()));
  }
  void OnRefused(const v1::HelloRefused& refused, bool is_final) override {
    log_.Add(is_final ? "refused for good" : "refused");
    log_.Add(v1::HelloRefused::Reason_Name(refused.reason()));
  }
  void OnAssign(const v1::Assign& assign) override {
    session_->Accept(assign.attempt_id());
    held_.emplace();
    held_->attempt.set_attempt_id(assign.attempt_id());
    held_->attempt.set_store_id(assign.store_id());
    held_->attempt.set_phase(v1::ATTEMPT_PHASE_SPOOLED);
    held_->attempt.set_spooled_through(num_frames_);
    session_->FramesSpooled();
  }
  void OnCancel(const v1::Cancel&) override { log_.Add("cancel"); }
  void OnAcked(const std::string&, uint64_t through) override {
    held_->acked_through = through;
    if (through < num_frames_) return;
    held_.reset();
    log_.Add("all acknowledged");
  }
  void OnUnsendableFrame(const std::string&, uint64_t, const Status&) override {
    log_.Add("unsendable");
  }

  const uint64_t num_frames_;
  const size_t frame_bytes_;
  IdSource ids_{SystemClock()};
  const std::string id_ = ids_.Next();
  SerialExecutor executor_{"agent"};
  EventLog log_;
  std::optional<Held> held_;
  AgentDialer dialer_;
  std::optional<session::AgentSession> session_;
};

// A peer that sends what it likes.
class RawPeer final : public session::StreamHandler<v1::ControllerMessage> {
 public:
  explicit RawPeer(const std::string& address) : dialer_(executor_, address) {
    RunOn(executor_, [this] {
      stream_ = dialer_.Dial();
      stream_->Start(*this);
    });
  }
  ~RawPeer() override {
    RunOn(executor_, [this] { stream_.reset(); });
    executor_.Stop();
  }
  void Send(const v1::AgentMessage& message) {
    RunOn(executor_, [&] { stream_->Send(message); });
  }
  EventLog& log() { return log_; }

 private:
  void OnMessage(const v1::ControllerMessage& message) override {
    log_.Add(std::string(session::KindOf(message)));
  }
  void OnClosed(const Status& status) override { log_.Add(StatusCodeName(status.code())); }

  SerialExecutor executor_{"peer"};
  EventLog log_;
  AgentDialer dialer_;
  std::unique_ptr<session::AgentStream> stream_;
};

inline std::string NewId() { return IdSource(SystemClock()).Next(); }

}  // namespace pipeyard::grpc_edge
