// Committer: commits what the controller decides and receives, in order, several batches in one
// transaction (group commit).
//
// It is the store's only writer. A batch is all or nothing; its callback is posted after the
// commit, never before, so that an acknowledgement cannot run ahead of the disk. While the store
// fails for reasons that may pass (busy, disk full, I/O error, damage), everything is kept in order
// and tried again: nothing is dropped and no agent hears of it as its own fault. A batch that the
// store refuses for what it says is isolated and reported to its own callback, and the others go
// on.
//
// It is not a queue without end: callers read fullness() and stop taking in more before Submit()
// refuses.
//
// Thread safety: Thread-safe. No call but FlushAndStop() blocks.
// Ownership: borrows the store and the executors, which outlive it; owns its writer thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "storage/store.h"

namespace pipeyard::ingest {

using Batch = std::vector<storage::Mutation>;
// OK: durable. kCancelled: the committer stopped first; nothing of the batch is stored. Else: the
// store refused this batch.
using Committed = std::function<void(const Status&)>;

struct CommitterOptions {
  // Larger transactions gain nothing past some hundred attempts and delay the acknowledgements of
  // the first.
  size_t max_group_mutations = 2'000;
  size_t max_group_bytes = size_t{8} << 20;
  // fullness() is 1 where either is reached.
  size_t max_queued_mutations = 65'536;
  size_t max_queued_bytes = size_t{64} << 20;
  // Between tries while the store fails; doubles up to the second.
  Nanos first_backoff = Milliseconds(50);
  Nanos max_backoff = Seconds(5);
};

struct CommitterState {
  // False since a try failed, until one succeeds.
  bool is_healthy = true;
  // What the latest failed try said; OK where healthy.
  Status failure;
  // Tries that failed in a row.
  uint64_t num_failures = 0;
};

struct CommitterCounts {
  uint64_t groups = 0;     // transactions that succeeded
  uint64_t batches = 0;    // committed
  uint64_t mutations = 0;  // committed
  uint64_t refused = 0;    // batches that the store refused
};

class Committer {
 public:
  // Callbacks are posted to `replies`.
  Committer(storage::Store& store, Executor& replies, CommitterOptions options = {});
  // Runs on `writer` instead of a thread of its own: for tests. FlushAndStop() is not to be called,
  // and `writer` runs nothing any more once this is gone.
  Committer(storage::Store& store, Executor& replies, Executor& writer, CommitterOptions options);
  // FlushAndStop() without waiting, where it was not called.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // Takes the batch, or refuses and leaves it untaken: kResourceExhausted when full, kCancelled
  // after FlushAndStop(). An empty batch is a barrier: its callback comes once everything before it
  // is committed.
  Status Submit(Batch batch, Committed done) EXCLUDES(mutex_);
  // Takes the batch also when full: for decisions that were made already, whose number the caller
  // bounds otherwise. After FlushAndStop() the callback gets kCancelled.
  void SubmitAlways(Batch batch, Committed done) EXCLUDES(mutex_);

  // Queued against what may be queued: 0 is empty; 1 and above is full.
  double fullness() const EXCLUDES(mutex_);
  CommitterState state() const EXCLUDES(mutex_);
  CommitterCounts counts() const EXCLUDES(mutex_);

  // Takes nothing more, commits what is queued, and ends the thread. kDeadlineExceeded where
  // `timeout` ran out first: then what is left is not stored, and its callbacks get kCancelled. Not
  // to be called from a callback. Idempotent.
  Status FlushAndStop(Nanos timeout) EXCLUDES(mutex_);

 private:
  struct Entry {
    Batch batch;
    Committed done;
    size_t num_mutations = 0;
    size_t size_bytes = 0;
  };
  // Batches that are tried in one transaction. `mutations` holds those of all, one after another.
  struct Group {
    struct Part {
      size_t begin = 0;
      size_t end = 0;
      size_t size_bytes = 0;
      Committed done;
    };
    std::vector<storage::Mutation> mutations;
    std::vector<Part> parts;
    size_t num_finished = 0;
    // Each part in a transaction of its own, since one of them was refused.
    bool is_isolated = false;
  };
  struct Reply {
    Committed done;
    Status status;
  };

  void Enqueue(Entry entry) REQUIRES(mutex_);
  bool IsFull() const REQUIRES(mutex_);
  // One try; posts the next.
  void Drain() REQUIRES(writer_.role) EXCLUDES(mutex_);
  void FillGroup() REQUIRES(writer_.role) EXCLUDES(mutex_);
  Status TryGroup(size_t& num_tried) REQUIRES(writer_.role);
  void FinishParts(size_t num_parts, const Status& status) REQUIRES(writer_.role) EXCLUDES(mutex_);
  // Whether FlushAndStop() was called.
  bool NoteFailure(const Status& status) REQUIRES(writer_.role) EXCLUDES(mutex_);
  void ScheduleDrain() REQUIRES(writer_.role) EXCLUDES(mutex_);
  void CancelLeftOver() EXCLUDES(mutex_);
  void PostReplies(std::vector<Reply> replies);

  // Constant after construction.
  storage::Store& store_;
  Executor& replies_;
  const CommitterOptions options_;
  const std::unique_ptr<SerialExecutor> own_writer_;
  Executor& writer_;

  // Confined to writer_.
  Group group_ GUARDED_BY(writer_.role);
  Nanos backoff_ GUARDED_BY(writer_.role);
  std::optional<TimerId> retry_timer_ GUARDED_BY(writer_.role);

  mutable Mutex mutex_;
  CondVar drained_;
  // Guarded by mutex_.
  std::deque<Entry> queue_ GUARDED_BY(mutex_);
  // Of the queue and of the group on its way.
  size_t num_open_batches_ GUARDED_BY(mutex_) = 0;
  size_t num_open_mutations_ GUARDED_BY(mutex_) = 0;
  size_t open_bytes_ GUARDED_BY(mutex_) = 0;
  // A Drain() is posted, running, or waits for its timer.
  bool is_draining_ GUARDED_BY(mutex_) = false;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  CommitterState state_ GUARDED_BY(mutex_);
  CommitterCounts counts_ GUARDED_BY(mutex_);
};

}  // namespace pipeyard::ingest
