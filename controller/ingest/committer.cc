#include "controller/ingest/committer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "base/log.h"

namespace pipeyard::ingest {
namespace {

// What a mutation without long texts takes in memory, about.
constexpr size_t kMutationBytes = 256;
constexpr size_t kTrialBytes = 64;

size_t SizeBytes(const storage::Mutation& mutation) {
  return std::visit(
      [](const auto& change) -> size_t {
        using Change = std::decay_t<decltype(change)>;
        if constexpr (std::is_same_v<Change, storage::StoreFrame> ||
                      std::is_same_v<Change, storage::StoreOrphan>) {
          return kMutationBytes + change.frame.ByteSizeLong();
        } else if constexpr (std::is_same_v<Change, storage::InsertRun>) {
          size_t size = kMutationBytes + change.run.sweep_yaml.size();
          for (const auto& cell : change.run.cells) size += cell.trials.size() * kTrialBytes;
          return size;
        } else {
          return kMutationBytes;
        }
      },
      mutation);
}

// Failures of the store's surroundings, which may pass; any other is about what the batch says.
bool IsStoreFailure(StatusCode code) {
  switch (code) {
    case StatusCode::kUnavailable:
    case StatusCode::kResourceExhausted:
    case StatusCode::kAborted:
    case StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

Committer::Committer(storage::Store& store, Executor& replies, CommitterOptions options)
    : store_(store),
      replies_(replies),
      options_(options),
      own_writer_(std::make_unique<SerialExecutor>("committer")),
      writer_(*own_writer_),
      backoff_(options.first_backoff) {}

Committer::Committer(storage::Store& store, Executor& replies, Executor& writer,
                     CommitterOptions options)
    : store_(store),
      replies_(replies),
      options_(options),
      writer_(writer),
      backoff_(options.first_backoff) {}

Committer::~Committer() {
  if (own_writer_ == nullptr) return;
  const Status status = FlushAndStop(Nanos(0));
  if (!status.ok()) Log(LogLevel::kWarning, "ingest", "{}", status.message());
}

Status Committer::Submit(Batch batch, Committed done) {
  MutexLock lock(mutex_);
  if (is_stopping_) return Cancelled("ingest: the controller is stopping");
  if (IsFull()) return ResourceExhausted("ingest: the queue is full");
  Enqueue({std::move(batch), std::move(done)});
  return Status::Ok();
}

void Committer::SubmitAlways(Batch batch, Committed done) {
  {
    MutexLock lock(mutex_);
    if (!is_stopping_) {
      Enqueue({std::move(batch), std::move(done)});
      return;
    }
  }
  PostReplies({{std::move(done), Cancelled("ingest: the controller is stopping")}});
}

void Committer::Enqueue(Entry entry) {
  entry.num_mutations = entry.batch.size();
  for (const storage::Mutation& mutation : entry.batch) entry.size_bytes += SizeBytes(mutation);
  ++num_open_batches_;
  num_open_mutations_ += entry.num_mutations;
  open_bytes_ += entry.size_bytes;
  queue_.push_back(std::move(entry));
  if (is_draining_) return;
  is_draining_ = true;
  writer_.Post([this]() noexcept {
    writer_.role.AssertHeld();
    Drain();
  });
}

bool Committer::IsFull() const {
  return num_open_mutations_ >= options_.max_queued_mutations ||
         open_bytes_ >= options_.max_queued_bytes;
}

void Committer::Drain() {
  retry_timer_.reset();
  FillGroup();
  size_t num_tried = 0;
  const Status status = TryGroup(num_tried);
  if (IsStoreFailure(status.code())) {
    const bool is_stopping = NoteFailure(status);
    // Whoever waits in FlushAndStop() waits for as many tries as its time allows.
    if (is_stopping) backoff_ = std::min(backoff_, options_.first_backoff);
    retry_timer_ = writer_.PostAfter(backoff_, [this]() noexcept {
      writer_.role.AssertHeld();
      Drain();
    });
    backoff_ = std::min(backoff_ * 2, options_.max_backoff);
    return;
  }
  if (!status.ok() && num_tried > 1) {
    group_.is_isolated = true;
  } else {
    FinishParts(num_tried, status);
  }
  ScheduleDrain();
}

void Committer::FillGroup() {
  if (group_.num_finished < group_.parts.size()) return;
  group_ = Group();
  MutexLock lock(mutex_);
  size_t size_bytes = 0;
  while (!queue_.empty()) {
    Entry& entry = queue_.front();
    const bool fits =
        group_.mutations.size() + entry.num_mutations <= options_.max_group_mutations &&
        size_bytes + entry.size_bytes <= options_.max_group_bytes;
    if (!group_.parts.empty() && !fits) break;
    const size_t begin = group_.mutations.size();
    std::move(entry.batch.begin(), entry.batch.end(), std::back_inserter(group_.mutations));
    group_.parts.push_back(
        {begin, group_.mutations.size(), entry.size_bytes, std::move(entry.done)});
    size_bytes += entry.size_bytes;
    queue_.pop_front();
  }
}

Status Committer::TryGroup(size_t& num_tried) {
  const std::span<const storage::Mutation> all(group_.mutations);
  if (!group_.is_isolated) {
    num_tried = group_.parts.size();
    return store_.Apply(all);
  }
  num_tried = 1;
  const Group::Part& part = group_.parts[group_.num_finished];
  return store_.Apply(all.subspan(part.begin, part.end - part.begin));
}

void Committer::FinishParts(size_t num_parts, const Status& status) {
  std::vector<Reply> replies;
  size_t num_mutations = 0;
  size_t size_bytes = 0;
  for (size_t i = 0; i < num_parts; ++i) {
    Group::Part& part = group_.parts[group_.num_finished++];
    num_mutations += part.end - part.begin;
    size_bytes += part.size_bytes;
    replies.push_back({std::move(part.done), status});
  }
  if (!status.ok()) Log(LogLevel::kWarning, "ingest", "batch refused: {}", status.ToString());
  bool has_recovered = false;
  {
    MutexLock lock(mutex_);
    num_open_batches_ -= num_parts;
    num_open_mutations_ -= num_mutations;
    open_bytes_ -= size_bytes;
    if (status.ok()) {
      ++counts_.groups;
      counts_.batches += num_parts;
      counts_.mutations += num_mutations;
    } else {
      counts_.refused += num_parts;
    }
    has_recovered = !state_.is_healthy;
    state_ = CommitterState();
    if (num_open_batches_ == 0) drained_.NotifyAll();
  }
  if (has_recovered) Log(LogLevel::kInfo, "ingest", "the store takes writes again");
  backoff_ = options_.first_backoff;
  PostReplies(std::move(replies));
}

bool Committer::NoteFailure(const Status& status) {
  bool was_healthy = false;
  bool is_stopping = false;
  {
    MutexLock lock(mutex_);
    is_stopping = is_stopping_;
    was_healthy = state_.is_healthy;
    state_.is_healthy = false;
    state_.failure = status;
    ++state_.num_failures;
  }
  if (was_healthy) {
    Log(LogLevel::kError, "ingest", "cannot commit, results wait: {}", status.ToString());
  }
  return is_stopping;
}

void Committer::ScheduleDrain() {
  const bool has_group = group_.num_finished < group_.parts.size();
  {
    MutexLock lock(mutex_);
    is_draining_ = has_group || !queue_.empty();
    if (!is_draining_) return;
  }
  writer_.Post([this]() noexcept {
    writer_.role.AssertHeld();
    Drain();
  });
}

void Committer::PostReplies(std::vector<Reply> replies) {
  if (replies.empty()) return;
  replies_.Post([replies = std::move(replies)]() noexcept {
    for (const Reply& reply : replies) {
      if (reply.done != nullptr) reply.done(reply.status);
    }
  });
}

double Committer::fullness() const {
  MutexLock lock(mutex_);
  return std::max(
      static_cast<double>(num_open_mutations_) / static_cast<double>(options_.max_queued_mutations),
      static_cast<double>(open_bytes_) / static_cast<double>(options_.max_queued_bytes));
}

CommitterState Committer::state() const {
  MutexLock lock(mutex_);
  return state_;
}

CommitterCounts Committer::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

Status Committer::FlushAndStop(Nanos timeout) {
  const MonotonicTime deadline = SystemClock().Now() + timeout;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  // What waits for its next try is tried at once.
  writer_.Post([this]() noexcept {
    writer_.role.AssertHeld();
    if (retry_timer_ && writer_.Cancel(*retry_timer_)) Drain();
  });
  size_t num_left = 0;
  Status failure;
  {
    MutexLock lock(mutex_);
    while (num_open_batches_ > 0) {
      const Nanos left = deadline - SystemClock().Now();
      if (left <= Nanos(0)) break;
      drained_.WaitFor(mutex_, left);
    }
  }
  own_writer_->Stop();
  {
    MutexLock lock(mutex_);
    num_left = num_open_batches_;
    failure = state_.failure;
  }
  if (num_left == 0) return Status::Ok();
  CancelLeftOver();
  return DeadlineExceeded(fmt::format("ingest: {} batches are not stored{}{}", num_left,
                                      failure.ok() ? "" : ": ", failure.message()));
}

void Committer::CancelLeftOver() {
  writer_.role.AssertHeld();  // its thread has ended
  std::vector<Reply> replies;
  const Status status = Cancelled("ingest: the controller stopped before this was stored");
  for (size_t i = group_.num_finished; i < group_.parts.size(); ++i) {
    replies.push_back({std::move(group_.parts[i].done), status});
  }
  group_ = Group();
  {
    MutexLock lock(mutex_);
    for (Entry& entry : queue_) replies.push_back({std::move(entry.done), status});
    queue_.clear();
    num_open_batches_ = 0;
    num_open_mutations_ = 0;
    open_bytes_ = 0;
  }
  PostReplies(std::move(replies));
}

}  // namespace pipeyard::ingest
