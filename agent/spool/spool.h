// Spool: what the agent owes to a controller, kept on disk until the controller has acknowledged
// it.
//
// One append-only log per attempt (record_format.h): the assignment, durable before it is accepted,
// then the frames of its result, durable before they are sent. The log is removed once its final
// frame is acknowledged. Not a queue: it does not know what was sent (AgentSession does), nor how
// an attempt is run (runner).
//
// Promises, whatever operation fails and whenever power is lost: what an OK was returned for is
// found again by Open(); nothing is found that nobody wrote; an attempt has at most one final
// frame. A write that failed may be found after a crash (it was asked for, after all), but a retry
// in the same process replaces it.
//
// Thread safety: Thread-safe. Calls that write hold the disk while they sync (milliseconds and
// more): make them from an executor of their own. List() never waits for the disk.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::spool {

struct SpoolOptions {
  std::string folder;
  // Below this much free room no attempt is accepted. 64 MiB hold some hundred results; what an
  // accepted attempt produces is written also below it.
  uint64_t min_free_bytes = 64 << 20;
};

// What Open() found, for one log line.
struct RecoveryCounts {
  int num_attempts = 0;
  int num_torn_logs = 0;   // logs whose tail was cut off
  uint64_t cut_bytes = 0;  // in those tails
  int num_quarantined =
      0;  // logs without a readable assignment, renamed to NAME.bad and left alone
  int num_unreadable =
      0;  // logs that could not be read now; they stay, and are tried again by the next Open()
};

struct SpooledAttempt {
  std::string attempt_id;
  std::string store_id;     // the only store its frames may go to
  uint64_t num_frames = 0;  // frames 1..num_frames are durable
  uint64_t acked_through = 0;
  bool is_final = false;  // frame num_frames is the last
};

class Spool {
 public:
  // Creates the folder where it is missing. `env` is borrowed and outlives the spool. One Spool per
  // folder at a time: the caller holds the lock of the state folder.
  static Result<std::unique_ptr<Spool>> Open(Env& env, SpoolOptions options);

  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  const RecoveryCounts& recovered() const { return recovered_; }

  // Journals the assignment. OK means durable: Accepted may be sent.
  // Errors: kAlreadyExists (the attempt is held), kResourceExhausted (too little free room; nothing
  // was written), kInvalidArgument (attempt_id is no UUID, or the message is too long), or the
  // Env's.
  Status Accept(const v1::Assign& assign) EXCLUDES(disk_mutex_, index_mutex_);

  // Appends frames of one attempt as one durable write; the last one may be final. store_id,
  // attempt_id and sequence are set here. Errors: kNotFound (attempt not held), kFailedPrecondition
  // (it has its final frame), kInvalidArgument (a frame over 1 MiB, a final frame that is not the
  // last), or the Env's: then nothing was added, and the caller may try again.
  Status Append(const std::string& attempt_id, std::vector<v1::Frame> frames)
      EXCLUDES(disk_mutex_, index_mutex_);

  // The controller has frames 1..through. Durable; forgets the attempt when that covers its final
  // frame. OK where the attempt is not held. Errors: kInvalidArgument (frames that do not exist),
  // or the Env's: then the frames are still held, or, where only the folder could not be synced,
  // may be found again after power loss. Sending them again is harmless.
  Status Ack(const std::string& attempt_id, uint64_t through) EXCLUDES(disk_mutex_, index_mutex_);

  // Sorted by attempt id, hence oldest first.
  std::vector<SpooledAttempt> List() const EXCLUDES(index_mutex_);
  std::optional<SpooledAttempt> Find(const std::string& attempt_id) const EXCLUDES(index_mutex_);

  // Reads from disk. Errors: kNotFound, kDataLoss (damaged since it was written), or the Env's.
  Result<v1::Assign> ReadAssignment(const std::string& attempt_id) const EXCLUDES(index_mutex_);
  Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) const
      EXCLUDES(index_mutex_);

  // kResourceExhausted with both figures where an attempt would be refused for want of room.
  Status CheckRoom() const;

 private:
  struct AttemptLog {
    std::string store_id;
    std::vector<uint64_t> frame_offsets;  // of frame i + 1
    uint64_t acked_through = 0;
    bool is_final = false;
    uint64_t good_bytes = 0;  // what counts; behind it lies at most the rest of a failed write
    bool has_tail = false;    // such a rest may be there: cut it off before the next write
  };

  Spool(Env& env, SpoolOptions options) : env_(env), options_(std::move(options)) {}

  std::string LogPath(const std::string& attempt_id) const;
  Status Recover() REQUIRES(disk_mutex_) EXCLUDES(index_mutex_);
  Status RecoverLog(const std::string& attempt_id) REQUIRES(disk_mutex_) EXCLUDES(index_mutex_);
  // Appends `bytes` behind the good ones and syncs. On failure the log has a tail.
  Status Write(const std::string& attempt_id, const std::string& bytes) REQUIRES(disk_mutex_)
      EXCLUDES(index_mutex_);
  Result<std::string> ReadPayload(const std::string& attempt_id, uint64_t offset) const;

  // Constant after construction.
  Env& env_;
  const SpoolOptions options_;
  RecoveryCounts recovered_;

  // Held through every write, so that one log has one writer; taken before index_mutex_.
  Mutex disk_mutex_;
  mutable Mutex index_mutex_;
  std::map<std::string, AttemptLog> logs_ GUARDED_BY(index_mutex_);
};

}  // namespace pipeyard::spool
