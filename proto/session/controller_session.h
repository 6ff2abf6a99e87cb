// ControllerSession: the controller's end of one stream. Checks every message, turns it into a
// typed event, and ends the stream when the agent breaks the protocol (kInvalidArgument), says no
// Hello in time, or falls silent for three heartbeat intervals. It knows one stream only: who may
// attach is SessionRegistry's decision, what results mean is the owner's.
//
// Liveness: any message counts, so that large frames on a slow link do not end the session. It
// never waits for the owner.
//
// Thread safety: confined to the executor given. Ownership: executor, clock and owner are borrowed
// and outlive this.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"
#include "proto/session/transport.h"

namespace pipeyard::session {

struct ControllerSessionOptions {
  // From the opening of the stream to Hello.
  Nanos hello_timeout = Seconds(10);
  // Said in Welcome; kMissedHeartbeats of it without a message end the session.
  Nanos heartbeat_interval = Seconds(10);
  // Said in Welcome and enforced.
  uint32_t max_unacked_frames = 8;
};

inline constexpr int kMissedHeartbeats = 3;

class ControllerSession final : private StreamHandler<v1::AgentMessage> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Answered by SendWelcome() or Refuse(), from inside this call or later.
    virtual void OnHello(ControllerSession& session, const v1::Hello& hello) = 0;
    // These come only after SendWelcome().
    virtual void OnAccepted(ControllerSession& session, const v1::Accepted& accepted) = 0;
    virtual void OnRefused(ControllerSession& session, const v1::Refused& refused) = 0;
    virtual void OnProgress(ControllerSession& session, const v1::Progress& progress) = 0;
    virtual void OnFrame(ControllerSession& session, const v1::Frame& frame) = 0;
    virtual void OnHeartbeat(ControllerSession& session, const v1::Heartbeat& heartbeat) = 0;
    // The last event; not sent for a Close() or Refuse() by the owner. The session may not be
    // destroyed from inside any event.
    virtual void OnSessionClosed(ControllerSession& session, const Status& status) = 0;
  };

  ControllerSession(Executor& executor, const Clock& clock, const ControllerSessionOptions& options,
                    std::unique_ptr<ControllerStream> stream, Owner& owner);
  ~ControllerSession() override;
  ControllerSession(const ControllerSession&) = delete;
  ControllerSession& operator=(const ControllerSession&) = delete;

  void Start();

  // Heartbeat interval and credits are filled in from the options.
  void SendWelcome(v1::Welcome welcome);
  // Sends HelloRefused and closes.
  void Refuse(v1::HelloRefused::Reason reason, const std::string& text);
  // Dropped unless attached.
  void SendAssign(const v1::Assign& assign);
  void SendAck(const std::string& attempt_id, uint64_t through);
  void SendCancel(const std::string& attempt_id, const std::string& reason);
  // No event comes after it.
  void Close(const Status& status);

  bool is_attached() const { return state_ == State::kAttached; }
  bool is_closed() const { return state_ == State::kClosed; }
  // The agent's Hello, without `held`. Empty before it came.
  const v1::Hello& hello() const { return hello_; }
  MonotonicTime last_heard() const { return last_heard_; }

 private:
  enum class State { kExpectsHello, kHelloReceived, kAttached, kClosed };

  void OnMessage(const v1::AgentMessage& message) override;
  void OnClosed(const Status& status) override;

  void HandleFrame(const v1::Frame& frame);
  // Closes the stream with `status` and tells the owner.
  void Fail(const Status& status);
  void CheckDeadline();
  uint64_t NumUnacked() const;

  // Constant after construction.
  Executor& executor_;
  const Clock& clock_;
  const ControllerSessionOptions options_;
  Owner& owner_;

  State state_ = State::kExpectsHello;
  std::unique_ptr<ControllerStream> stream_;
  v1::Hello hello_;
  // Of the Welcome: frames of other stores are a protocol error.
  std::string store_id_;
  MonotonicTime last_heard_{0};
  TimerId timer_ = 0;

  struct AttemptProgress {
    uint64_t first_received = 0;
    uint64_t received_through = 0;
    uint64_t acked_through = 0;
    uint64_t final_sequence = 0;  // 0: not received yet
  };
  // Attempts with frames or acknowledgements on this stream; one leaves when its final frame is
  // acknowledged.
  std::map<std::string, AttemptProgress> attempts_;
};

}  // namespace pipeyard::session
