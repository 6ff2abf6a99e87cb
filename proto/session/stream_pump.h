// StreamPump: turns a callback transport, whose reactions come on any thread, into a Stream on one
// Executor. It owns the rules that every bidirectional callback stream obeys, and knows no
// transport:
//
// - One read and one write at a time. The next write waits for OnWriteDone, whatever was
//   received meanwhile: an acknowledgement can overtake it.
// - The next read starts when the owner has handled the last message: a slow owner slows its peer.
// - Call::End() once, when the stream is over and nothing is being started: no write is in flight
//   and no thread is inside a Call method. Nothing is started after it.
// - Reads go on until one fails (or the call is canceled): else the call's last reaction never
// comes.
//
// Thread safety: On*() from any thread, one read and one write reaction at a time; the rest
// confined to the executor. Ownership: shared by the Stream, the reactor and posted tasks, because
// none of them can know which ends last. The executor outlives all of them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/session/transport.h"

namespace pipeyard::session {

// How long the accepting end waits for a peer to take what was sent before Close().
inline constexpr Nanos kDrainTimeout = Seconds(5);

template <typename Sent, typename Received>
class StreamPump : public std::enable_shared_from_this<StreamPump<Sent, Received>> {
 public:
  // The transport's call. Methods are called outside of locks, from any thread, never after End().
  class Call {
   public:
    virtual ~Call() = default;
    // `into` stays valid until OnReadDone().
    virtual void StartRead(Received* into) = 0;
    // `message` stays valid until OnWriteDone().
    virtual void StartWrite(const Sent* message) = 0;
    // Ends the call as soon as can be: pending operations fail.
    virtual void Cancel() = 0;
    // Nothing more will be started; the accepting end sends `status`.
    virtual void End(const Status& status) = 0;
  };

  // `drain_timeout` 0: Close() cancels at once (the dialing end). `call` lives until OnDone().
  StreamPump(Executor& executor, Call& call, Nanos drain_timeout)
      : executor_(executor), call_(call), drain_timeout_(drain_timeout) {}

  // --- reactions ---------------------------------------------------------------------------------

  void OnReadDone(bool ok) EXCLUDES(mutex_) {
    if (ok) {
      executor_.Post([self = this->shared_from_this()] { self->Deliver(); });
      return;
    }
    OnCancel();
  }

  void OnWriteDone(bool ok) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      is_writing_ = false;
      queue_.pop_front();
      // Reading goes on: what the peer said before it went is still to be heard.
      if (!ok) is_deaf_ = true;
      if (is_deaf_) queue_.clear();
    }
    WriteOrEnd();
  }

  // The call is over for the transport.
  void OnCancel() EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      is_over_ = true;
      is_deaf_ = true;
      DropUnwritten();
    }
    WriteOrEnd();
  }

  // The last reaction. `status`: what the transport says of the call's end.
  void OnDone(const Status& status) EXCLUDES(mutex_) {
    Status last = status;
    {
      MutexLock lock(mutex_);
      if (close_status_.has_value()) last = *close_status_;
    }
    executor_.Post([self = this->shared_from_this(), last] {
      StreamHandler<Received>* const handler = std::exchange(self->handler_, nullptr);
      if (handler != nullptr) handler->OnClosed(last);
    });
  }

  // --- the Stream --------------------------------------------------------------------------------

  void Start(StreamHandler<Received>& handler) {
    handler_ = &handler;
    StartRead();
  }

  void Send(Sent message) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (is_deaf_ || close_status_.has_value()) return;
      queue_.push_back(std::move(message));
    }
    WriteOrEnd();
  }

  size_t num_unsent() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.size();
  }

  void Close(const Status& status) EXCLUDES(mutex_) {
    bool must_cancel = false;
    {
      MutexLock lock(mutex_);
      if (close_status_.has_value()) return;
      close_status_ = status;
      if (drain_timeout_ <= Nanos(0)) {
        is_deaf_ = true;
        DropUnwritten();
        must_cancel = true;
      }
    }
    if (must_cancel) {
      CancelCall();
    } else {
      executor_.PostAfter(drain_timeout_,
                          [self = this->shared_from_this()] { self->CancelCall(); });
    }
    WriteOrEnd();
  }

  // The Stream is destroyed: no handler call from now on.
  void Abandon() {
    handler_ = nullptr;
    Close(Cancelled("the stream was dropped"));
  }

 private:
  // On the executor.
  void Deliver() EXCLUDES(mutex_) {
    if (handler_ != nullptr && !IsClosed()) handler_->OnMessage(incoming_);
    if (!IsClosed()) StartRead();
  }

  bool IsClosed() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return close_status_.has_value();
  }

  void StartRead() EXCLUDES(mutex_) {
    if (!Enter()) return;
    call_.StartRead(&incoming_);
    Leave();
  }

  void CancelCall() EXCLUDES(mutex_) {
    if (!Enter()) return;
    call_.Cancel();
    Leave();
  }

  // Between Enter() and Leave() the call cannot end. False: End() was called.
  bool Enter() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (has_ended_) return false;
    ++num_inside_;
    return true;
  }

  void Leave() EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      --num_inside_;
    }
    WriteOrEnd();
  }

  // Starts the next write, or ends the call, where either is due.
  void WriteOrEnd() EXCLUDES(mutex_) {
    const Sent* next = nullptr;
    std::optional<Status> end;
    {
      MutexLock lock(mutex_);
      if (has_ended_ || is_writing_) return;
      if (!queue_.empty()) {
        is_writing_ = true;
        ++num_inside_;
        next = &queue_.front();
      } else if ((is_over_ || close_status_.has_value()) && num_inside_ == 0) {
        has_ended_ = true;
        end = close_status_.value_or(Unavailable("the peer ended the stream"));
      }
    }
    if (next != nullptr) {
      call_.StartWrite(next);
      Leave();
    } else if (end.has_value()) {
      call_.End(*end);
    }
  }

  // A message that is being written stays where it is until OnWriteDone().
  void DropUnwritten() REQUIRES(mutex_) {
    while (queue_.size() > (is_writing_ ? 1u : 0u)) queue_.pop_back();
  }

  // Constant after construction.
  Executor& executor_;
  Call& call_;
  const Nanos drain_timeout_;

  // Confined to the executor, but for `incoming_` between StartRead() and OnReadDone().
  StreamHandler<Received>* handler_ = nullptr;
  Received incoming_;

  mutable Mutex mutex_;
  // The front one is being written while is_writing_.
  std::deque<Sent> queue_ GUARDED_BY(mutex_);
  bool is_writing_ GUARDED_BY(mutex_) = false;
  // The peer takes no more messages.
  bool is_deaf_ GUARDED_BY(mutex_) = false;
  bool is_over_ GUARDED_BY(mutex_) = false;
  bool has_ended_ GUARDED_BY(mutex_) = false;
  std::optional<Status> close_status_ GUARDED_BY(mutex_);
  int num_inside_ GUARDED_BY(mutex_) = 0;
};

}  // namespace pipeyard::session
