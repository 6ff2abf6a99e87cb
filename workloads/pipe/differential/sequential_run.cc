#include "workloads/pipe/differential/sequential_run.h"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "workloads/pipe/differential/stream.h"

namespace pipeyard::pipe::differential {
namespace {

constexpr uint32_t kDrainBytes = 64 << 10;

std::string DescribeMask(uint16_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", mask);
  return text;
}

}  // namespace

SequentialRun::SequentialRun(PipeSystem& reference, PipeSystem& subject,
                             const CheckOptions& options)
    : reference_(reference), subject_(subject), options_(options) {}

std::optional<Divergence> SequentialRun::Run(std::span<const Operation> operations) {
  table_ = FileTable();
  facts_.clear();
  what_.clear();
  std::optional<Divergence> found;
  uint32_t until_check = options_.interval;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    if (!IsApplicable(operation)) continue;
    ++num_applied_;
    must_check_ = false;
    Apply(operation);
    if (what_.empty() && (must_check_ || --until_check == 0)) {
      CheckEverything();
      until_check = options_.interval;
    }
    if (!what_.empty()) {
      found = Divergence{i, FormatOperation(operation) + ": " + what_};
      break;
    }
  }
  if (!found) {
    CheckRemains();
    if (!what_.empty()) found = Divergence{operations.size(), "at the end: " + what_};
  }
  reference_.Reset();
  subject_.Reset();
  return found;
}

bool SequentialRun::IsApplicable(const Operation& operation) {
  if (!table_.Allows(operation)) return false;
  switch (operation.action) {
    case Action::kWrite:
    case Action::kWriteQuietly:
    case Action::kRead:
      return operation.value <= kMaxTransfer && !WouldWait(operation);
    case Action::kWatch:
      return options_.has_write_watches || table_.file(operation.file).end == PipeEnd::kRead;
    case Action::kWaitPoll:
    case Action::kInterrupt:
      return false;
    case Action::kCreate:
    case Action::kOpenReader:
    case Action::kOpenWriter:
    case Action::kClose:
    case Action::kSetNonblocking:
    case Action::kSetPacket:
    case Action::kResize:
    case Action::kCapacity:
    case Action::kQueuedBytes:
    case Action::kPoll:
    case Action::kTakeReady:
      return true;
  }
  return false;
}

bool SequentialRun::WouldWait(const Operation& operation) {
  const FileTable::File& file = table_.file(operation.file);
  if (file.flags.is_nonblocking) return false;
  if (operation.action == Action::kRead) {
    return operation.value != 0 && table_.CountEnds(file.pipe, PipeEnd::kWrite) != 0 &&
           reference_.QueuedBytes(0, operation.file).value == 0;
  }
  const uint64_t slots = operation.value / options_.page_bytes + 1;
  const auto capacity = static_cast<uint64_t>(reference_.Capacity(0, operation.file).value);
  PipeFacts& facts = FactsOf(operation.file);
  if (reference_.QueuedBytes(0, operation.file).value == 0) facts.max_slots = 0;
  return table_.CountEnds(file.pipe, PipeEnd::kRead) != 0 &&
         facts.max_slots + slots > capacity / options_.page_bytes;
}

void SequentialRun::Compare(const char* what, Outcome reference, Outcome subject) {
  if (reference == subject || !what_.empty()) return;
  what_ = std::string(what) + ": the reference says " + DescribeOutcome(reference) +
          ", the subject " + DescribeOutcome(subject);
}

void SequentialRun::Apply(const Operation& operation) {
  const int actor = operation.actor;
  const int file = operation.file;
  const int new_file = static_cast<int>(operation.value);
  Outcome outcome;
  switch (operation.action) {
    case Action::kCreate: {
      const FileFlags flags{.is_nonblocking = operation.value != 0};
      outcome = reference_.Create(actor, file, file + 1, flags);
      Compare("create", outcome, subject_.Create(actor, file, file + 1, flags));
      if (outcome.value == 0 && what_.empty()) {
        table_.Create(file, flags);
        facts_.emplace_back();
      }
      break;
    }
    case Action::kOpenReader:
    case Action::kOpenWriter: {
      const PipeEnd end =
          operation.action == Action::kOpenReader ? PipeEnd::kRead : PipeEnd::kWrite;
      outcome = reference_.Open(actor, file, end, new_file);
      Compare("open", outcome, subject_.Open(actor, file, end, new_file));
      if (outcome.value == 0 && what_.empty()) table_.Open(file, end, new_file);
      break;
    }
    case Action::kClose:
      outcome = reference_.Close(actor, file);
      Compare("close", outcome, subject_.Close(actor, file));
      table_.Close(file);
      break;
    case Action::kWrite:
    case Action::kWriteQuietly:
      return ApplyWrite(operation);
    case Action::kRead:
      return ApplyRead(operation);
    case Action::kSetNonblocking:
    case Action::kSetPacket:
      return ApplyFlags(operation);
    case Action::kResize:
      outcome = reference_.Resize(actor, file, operation.value);
      Compare("resize", outcome, subject_.Resize(actor, file, operation.value));
      break;
    case Action::kCapacity:
      outcome = reference_.Capacity(actor, file);
      return Compare("capacity", outcome, subject_.Capacity(actor, file));
    case Action::kQueuedBytes:
      outcome = reference_.QueuedBytes(actor, file);
      return Compare("queued bytes", outcome, subject_.QueuedBytes(actor, file));
    case Action::kWatch:
      outcome = reference_.Watch(actor, file);
      table_.Watch(actor, file);
      return Compare("watch", outcome, subject_.Watch(actor, file));
    case Action::kPoll:
    case Action::kTakeReady:
      return ApplyPoll(operation);
    case Action::kWaitPoll:
    case Action::kInterrupt:
      return;
  }
  must_check_ = true;
}

void SequentialRun::ApplyWrite(const Operation& operation) {
  PipeFacts& facts = FactsOf(operation.file);
  const char* data = StreamAt(facts.written);
  const bool is_quiet = operation.action == Action::kWriteQuietly;
  const Outcome outcome =
      reference_.Write(operation.actor, operation.file, data, operation.value, is_quiet);
  Compare("write", outcome,
          subject_.Write(operation.actor, operation.file, data, operation.value, is_quiet));
  must_check_ = outcome.value != operation.value;
  if (outcome.value <= 0) return;
  facts.written += static_cast<uint64_t>(outcome.value);
  facts.max_slots += static_cast<uint64_t>(outcome.value) / options_.page_bytes + 1;
}

void SequentialRun::ApplyRead(const Operation& operation) {
  if (reference_bytes_.size() < operation.value) {
    reference_bytes_.resize(operation.value);
    subject_bytes_.resize(operation.value);
  }
  const Outcome outcome =
      reference_.Read(operation.actor, operation.file, reference_bytes_.data(), operation.value);
  Compare("read", outcome,
          subject_.Read(operation.actor, operation.file, subject_bytes_.data(), operation.value));
  if (outcome.value <= 0 || !what_.empty()) return;
  const auto size = static_cast<size_t>(outcome.value);
  if (std::memcmp(reference_bytes_.data(), subject_bytes_.data(), size) == 0) return;
  const auto [at, unused] = std::mismatch(
      reference_bytes_.begin(), reference_bytes_.begin() + outcome.value, subject_bytes_.begin());
  what_ = "read: byte " + std::to_string(at - reference_bytes_.begin()) + " of " +
          std::to_string(size) + " differs";
}

void SequentialRun::ApplyFlags(const Operation& operation) {
  FileFlags flags = table_.file(operation.file).flags;
  (operation.action == Action::kSetPacket ? flags.is_packet : flags.is_nonblocking) =
      operation.value != 0;
  Compare("set flags", reference_.SetFlags(operation.actor, operation.file, flags),
          subject_.SetFlags(operation.actor, operation.file, flags));
  table_.SetFlags(operation.file, flags);
}

void SequentialRun::ApplyPoll(const Operation& operation) {
  PollMasks reference{};
  PollMasks subject{};
  const FileSet files = operation.value & table_.OpenFiles();
  if (operation.action == Action::kPoll) {
    const Outcome outcome = reference_.Poll(operation.actor, files, false, reference);
    Compare("poll", outcome, subject_.Poll(operation.actor, files, false, subject));
  } else {
    const Outcome outcome = reference_.TakeReady(operation.actor, reference);
    Compare("watches", outcome, subject_.TakeReady(operation.actor, subject));
  }
  for (size_t file = 0; file < kMaxFiles && what_.empty(); ++file) {
    if (reference[file] == subject[file]) continue;
    what_ = "readiness of f" + std::to_string(file) + ": the reference says " +
            DescribeMask(reference[file]) + ", the subject " + DescribeMask(subject[file]);
  }
}

void SequentialRun::CheckEverything() {
  const FileSet open = table_.OpenFiles();
  uint64_t seen_pipes = 0;
  for (int file = 0; file < kMaxFiles; ++file) {
    if (!table_.IsOpen(file)) continue;
    // Of each pipe once; pipes are few in a program that lasts long enough to number 64.
    const uint64_t bit = uint64_t{1} << (table_.file(file).pipe % 64);
    if ((seen_pipes & bit) != 0) continue;
    seen_pipes |= bit;
    Compare("then queued bytes", reference_.QueuedBytes(0, file), subject_.QueuedBytes(0, file));
    Compare("then capacity", reference_.Capacity(0, file), subject_.Capacity(0, file));
  }
  if (options_.has_polls && open != 0 && what_.empty()) {
    ApplyPoll({Action::kPoll, 0, 0, open});
  }
}

void SequentialRun::CheckRemains() {
  for (int file = 0; file < kMaxFiles && what_.empty(); ++file) {
    if (!table_.IsOpen(file)) continue;
    ApplyFlags({Action::kSetNonblocking, 0, static_cast<uint8_t>(file), 1});
    if (table_.file(file).end != PipeEnd::kRead) continue;
    while (what_.empty() && reference_.QueuedBytes(0, file).value > 0) {
      ApplyRead({Action::kRead, 0, static_cast<uint8_t>(file), kDrainBytes});
    }
  }
  for (int file = 0; file < kMaxFiles && what_.empty(); ++file) {
    if (!table_.IsOpen(file, PipeEnd::kWrite)) continue;
    // A short write tells how many slots are free.
    ApplyWrite({Action::kWrite, 0, static_cast<uint8_t>(file), kMaxTransfer});
  }
}

}  // namespace pipeyard::pipe::differential
