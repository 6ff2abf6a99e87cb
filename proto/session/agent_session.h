// AgentSession: the agent's end of the protocol. Keeps one stream to the controller: dials, says
// Hello, resends what is not acknowledged, sends heartbeats, dials again. Decides nothing about
// trials; never touches a disk except through AttemptSource.
//
//   Start() ──> dialing ── Welcome ──> attached ── closed ──> backoff ── timer ──> dialing
//                  │                                             ▲
//                  ├ closed, Welcome late, refused for now ──────┘
//                  └ refused for good ──> refused, until Start() is called again
//   Stop() from anywhere ──> stopped
//
// A dead link is noticed by the transport (gRPC keepalive, 10 s + 5 s); a controller that does not
// answer Hello by welcome_timeout. A controller that acknowledges nothing counts as alive: its disk
// may be slow, and credits bound what the agent sends meanwhile.
//
// Thread safety: confined to the executor given. Ownership: everything given by reference is
// borrowed and outlives this.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"
#include "proto/session/transport.h"

namespace pipeyard::session {

// What the agent holds, asked by the session whenever it needs it; implemented over the spool.
class AttemptSource {
 public:
  struct Held {
    v1::HeldAttempt attempt;
    // Frames 1..this are acknowledged. Frames acked_through + 1 .. attempt.spooled_through can be
    // read.
    uint64_t acked_through = 0;
  };

  virtual ~AttemptSource() = default;
  // Every attempt that waits, runs, or has frames that are not acknowledged, of any store; oldest
  // first.
  virtual std::vector<Held> HeldAttempts() = 0;
  virtual Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) = 0;
};

// What the session tells the agent. Calls into the session are allowed from inside, destroying it
// is not.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;

  virtual void OnAttached(const v1::Welcome& welcome) = 0;
  // The stream ended or could not be made; the next dial is in `retry_in`.
  virtual void OnDetached(const Status& why, Nanos retry_in) = 0;
  // `is_final`: the session dials no more (other protocol version, name in use, malformed,
  // retired); the agent should finish what it runs, say `refused.text()` and end. Else (cloned id:
  // the other one may be this host's own session from before a reboot, and dies within three
  // heartbeats) OnDetached() follows.
  virtual void OnRefused(const v1::HelloRefused& refused, bool is_final) = 0;

  // Answer with Accept() or Refuse(), also when the attempt is held already. Stale epochs and other
  // stores never come here.
  virtual void OnAssign(const v1::Assign& assign) = 0;
  virtual void OnCancel(const v1::Cancel& cancel) = 0;
  // Frames 1..through (never more than are spooled) are committed: the spool may forget them. Comes
  // repeatedly.
  virtual void OnAcked(const std::string& attempt_id, uint64_t through) = 0;
  // A frame of the spool cannot be read or is not valid, so nothing of this attempt is sent after
  // it on this stream.
  virtual void OnUnsendableFrame(const std::string& attempt_id, uint64_t sequence,
                                 const Status& why) = 0;
};

struct AgentSessionOptions {
  // From dialing to Welcome; the connection is made within it.
  Nanos welcome_timeout = Seconds(15);
  // Before dial n + 1 the session waits between half of min(backoff_max, backoff_min * 2^n) and all
  // of it.
  Nanos backoff_min = Milliseconds(200);
  Nanos backoff_max = Seconds(10);
  // An attachment that lasted this long begins the backoff anew.
  Nanos stable_after = Seconds(5);
  // Of the jitter.
  uint64_t seed = 1;
};

class AgentSession final : private StreamHandler<v1::ControllerMessage> {
 public:
  enum class State { kStopped, kDialing, kAttached, kBackoff, kRefused };

  // `hello`: identity and facts; protocol_version and held are filled in by the session.
  AgentSession(Executor& executor, const Clock& clock, Dialer& dialer, AttemptSource& source,
               AgentEvents& events, v1::Hello hello, AgentSessionOptions options);
  ~AgentSession() override;
  AgentSession(const AgentSession&) = delete;
  AgentSession& operator=(const AgentSession&) = delete;

  void Start();
  // Closes the stream; no event comes after it. Idempotent.
  void Stop();

  // A frame was synced to the spool, or an attempt was forgotten: sends what the credits allow.
  void FramesSpooled();
  // An attempt changed its phase: one Heartbeat out of turn, so that the controller shows it at
  // once. Not needed for correctness.
  void HeldChanged();

  // Answers to OnAssign(); dropped while not attached (the controller assigns again after the next
  // Hello).
  void Accept(const std::string& attempt_id);
  void Refuse(const std::string& attempt_id, v1::Refused::Reason reason, const std::string& text);
  // Lossy: dropped while not attached or while anything waits to be sent.
  void SendProgress(const std::string& text);

  // The facts of the host changed: said in the next Hello.
  void SetFacts(v1::HostFacts facts);

  State state() const { return state_; }
  // Of the newest Welcome; empty and 0 before the first.
  const std::string& store_id() const { return welcome_.store_id(); }
  uint64_t epoch() const { return welcome_.epoch(); }

 private:
  void OnMessage(const v1::ControllerMessage& message) override;
  void OnClosed(const Status& status) override;

  void Dial();
  // Drops the stream, closing it with `why` where it is open, and dials again later.
  void Detach(const Status& why);
  void HandleWelcome(const v1::Welcome& welcome);
  void HandleRefusal(const v1::HelloRefused& refused);
  void HandleAssign(const v1::Assign& assign);
  void HandleAck(const v1::Ack& ack);
  void SendFrames();
  // False where the frame cannot be sent.
  bool SendFrame(const v1::HeldAttempt& attempt, uint64_t sequence);
  void AppendHeld(google::protobuf::RepeatedPtrField<v1::HeldAttempt>* list);
  void SendHeartbeat();
  void ArmTimer(Nanos delay, void (AgentSession::*expired)());
  void WelcomeIsLate();
  void HeartbeatIsDue();
  void CancelTimer();
  Nanos NextBackoff();

  // Constant after construction.
  Executor& executor_;
  const Clock& clock_;
  Dialer& dialer_;
  AttemptSource& source_;
  AgentEvents& events_;
  const AgentSessionOptions options_;

  v1::Hello hello_;
  State state_ = State::kStopped;
  std::unique_ptr<AgentStream> stream_;
  v1::Welcome welcome_;
  // One timer serves all states: Welcome's deadline, the next heartbeat, the next dial. 0: none.
  TimerId timer_ = 0;
  MonotonicTime attached_at_{0};
  int num_failures_ = 0;
  std::mt19937_64 random_;
  // Per attempt, on this stream: frames up to this one were sent. Cleared with the stream.
  std::map<std::string, uint64_t> sent_through_;
  // Attempts whose next frame cannot be sent on this stream.
  std::set<std::string> unsendable_;
};

}  // namespace pipeyard::session
