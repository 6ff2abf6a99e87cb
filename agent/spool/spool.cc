#include "agent/spool/spool.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "agent/spool/record_format.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/units.h"

namespace pipeyard::spool {
namespace {

constexpr std::string_view kRoom = "spool";
constexpr std::string_view kLogSuffix = ".log";

SpooledAttempt Describe(const std::string& attempt_id, const auto& log) {
  return {attempt_id, log.store_id, log.frame_offsets.size(), log.acked_through, log.is_final};
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::Open(Env& env, SpoolOptions options) {
  std::unique_ptr<Spool> spool(new Spool(env, std::move(options)));
  MutexLock disk(spool->disk_mutex_);
  if (const Status status = spool->Recover(); !status.ok())
    return status.WithContext("spool: open");
  return spool;
}

std::string Spool::LogPath(const std::string& attempt_id) const {
  return fmt::format("{}/{}{}", options_.folder, attempt_id, kLogSuffix);
}

Status Spool::Recover() {
  PIPEYARD_RETURN_IF_ERROR(env_.CreateDirs(options_.folder));
  PIPEYARD_RETURN_IF_ERROR(
      env_.SyncDir(std::filesystem::path(options_.folder).parent_path().string()));
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, env_.ListDir(options_.folder));
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", options_.folder, name);
    if (name.ends_with(".tmp")) {
      // An assignment whose journaling was cut short: it was never accepted.
      (void)env_.RemoveFile(path);
      continue;
    }
    if (!name.ends_with(kLogSuffix)) continue;
    const std::string attempt_id = name.substr(0, name.size() - kLogSuffix.size());
    if (!IsUuid(attempt_id)) continue;
    const Status status = RecoverLog(attempt_id);
    if (status.ok()) continue;
    if (status.code() == StatusCode::kDataLoss) {
      ++recovered_.num_quarantined;
      Log(LogLevel::kError, kRoom, "{}; kept as {}.bad", status.message(), path);
      (void)env_.Rename(path, path + ".bad");
    } else {
      ++recovered_.num_unreadable;
      Log(LogLevel::kError, kRoom, "{}", status.message());
    }
  }
  return Status::Ok();
}

Status Spool::RecoverLog(const std::string& attempt_id) {
  const std::string path = LogPath(attempt_id);
  PIPEYARD_ASSIGN_OR_RETURN(const std::string bytes, env_.ReadFile(path));
  Record record;
  v1::Assign assign;
  if (!bytes.starts_with(kMagic) ||
      ReadRecord(bytes, kMagic.size(), record) != ReadOutcome::kRecord ||
      record.type != RecordType::kAssignment ||
      !assign.ParseFromArray(record.payload.data(), static_cast<int>(record.payload.size())) ||
      assign.attempt_id() != attempt_id) {
    return DataLoss(fmt::format("{} holds no assignment of its attempt", path));
  }
  AttemptLog log;
  log.store_id = assign.store_id();
  size_t offset = record.end;
  // A sound checksum over a record that cannot follow is damage too: what follows it is not
  // trusted.
  while (ReadRecord(bytes, offset, record) == ReadOutcome::kRecord) {
    if (record.type == RecordType::kFrame) {
      v1::Frame frame;
      if (log.is_final ||
          !frame.ParseFromArray(record.payload.data(), static_cast<int>(record.payload.size())) ||
          frame.attempt_id() != attempt_id || frame.sequence() != log.frame_offsets.size() + 1) {
        break;
      }
      log.frame_offsets.push_back(offset);
      log.is_final = frame.is_final();
    } else if (record.type == RecordType::kAck) {
      const uint64_t through = DecodeThrough(record.payload);
      if (through <= log.acked_through || through > log.frame_offsets.size()) break;
      log.acked_through = through;
    } else {
      break;
    }
    offset = record.end;
  }
  log.good_bytes = offset;
  if (offset < bytes.size()) {
    ++recovered_.num_torn_logs;
    recovered_.cut_bytes += bytes.size() - offset;
    log.has_tail = !env_.Truncate(path, offset).ok();
  }
  ++recovered_.num_attempts;
  MutexLock lock(index_mutex_);
  logs_.emplace(attempt_id, std::move(log));
  return Status::Ok();
}

Status Spool::CheckRoom() const {
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t free_bytes, env_.FreeBytes(options_.folder));
  if (free_bytes >= options_.min_free_bytes) return Status::Ok();
  return ResourceExhausted(fmt::format("{} has {} B free, below the {} B that are kept for results",
                                       options_.folder, free_bytes, options_.min_free_bytes));
}

Status Spool::Accept(const v1::Assign& assign) {
  const std::string& attempt_id = assign.attempt_id();
  if (!IsUuid(attempt_id)) return InvalidArgument("spool: the attempt id is not a UUID");
  std::string payload;
  if (!assign.SerializeToString(&payload) || payload.size() > kMaxPayloadBytes) {
    return InvalidArgument(
        fmt::format("spool: the assignment of {} is over {} B", attempt_id, kMaxPayloadBytes));
  }
  MutexLock disk(disk_mutex_);
  {
    MutexLock lock(index_mutex_);
    if (logs_.contains(attempt_id))
      return AlreadyExists(fmt::format("spool: attempt {} is held", attempt_id));
  }
  if (const Status room = CheckRoom(); !room.ok()) return room.WithContext("spool");
  std::string bytes(kMagic);
  AppendRecord(RecordType::kAssignment, payload, bytes);
  if (const Status status = env_.WriteFileAtomic(LogPath(attempt_id), bytes); !status.ok()) {
    // It may stand there or not. Where it cannot be removed now, it is found after a restart as an
    // attempt that never began.
    (void)env_.RemoveFile(LogPath(attempt_id));
    return status.WithContext(fmt::format("spool: journal attempt {}", attempt_id));
  }
  MutexLock lock(index_mutex_);
  AttemptLog& log = logs_[attempt_id];
  log.store_id = assign.store_id();
  log.good_bytes = bytes.size();
  return Status::Ok();
}

Status Spool::Append(const std::string& attempt_id, std::vector<v1::Frame> frames) {
  MutexLock disk(disk_mutex_);
  AttemptLog log;
  {
    MutexLock lock(index_mutex_);
    const auto it = logs_.find(attempt_id);
    if (it == logs_.end())
      return NotFound(fmt::format("spool: attempt {} is not held", attempt_id));
    log = it->second;
  }
  if (log.is_final)
    return FailedPrecondition(fmt::format("spool: attempt {} has its final frame", attempt_id));
  std::string bytes;
  for (v1::Frame& frame : frames) {
    if (log.is_final) return InvalidArgument("spool: a final frame is not the last one");
    frame.set_store_id(log.store_id);
    frame.set_attempt_id(attempt_id);
    frame.set_sequence(log.frame_offsets.size() + 1);
    std::string payload;
    if (!frame.SerializeToString(&payload) || payload.size() > kMaxPayloadBytes) {
      return InvalidArgument(fmt::format("spool: frame {} of attempt {} is over {} B",
                                         frame.sequence(), attempt_id, kMaxPayloadBytes));
    }
    log.frame_offsets.push_back(log.good_bytes + bytes.size());
    log.is_final = frame.is_final();
    AppendRecord(RecordType::kFrame, payload, bytes);
  }
  PIPEYARD_RETURN_IF_ERROR(Write(attempt_id, bytes));
  MutexLock lock(index_mutex_);
  AttemptLog& held = logs_[attempt_id];
  held.frame_offsets = std::move(log.frame_offsets);
  held.is_final = log.is_final;
  held.good_bytes += bytes.size();
  return Status::Ok();
}

Status Spool::Ack(const std::string& attempt_id, uint64_t through) {
  MutexLock disk(disk_mutex_);
  std::string bytes;
  {
    MutexLock lock(index_mutex_);
    const auto it = logs_.find(attempt_id);
    if (it == logs_.end()) return Status::Ok();
    const AttemptLog& log = it->second;
    if (through > log.frame_offsets.size()) {
      return InvalidArgument(
          fmt::format("spool: frame {} of attempt {} is acknowledged, of {} frames", through,
                      attempt_id, log.frame_offsets.size()));
    }
    if (through <= log.acked_through) return Status::Ok();
    if (!log.is_final || through < log.frame_offsets.size()) {
      AppendRecord(RecordType::kAck, EncodeThrough(through), bytes);
    }
  }
  if (!bytes.empty()) {
    PIPEYARD_RETURN_IF_ERROR(Write(attempt_id, bytes));
    MutexLock lock(index_mutex_);
    AttemptLog& log = logs_[attempt_id];
    log.acked_through = through;
    log.good_bytes += bytes.size();
    return Status::Ok();
  }
  const std::string context = fmt::format("spool: forget attempt {}", attempt_id);
  const Status removed = env_.RemoveFile(LogPath(attempt_id));
  if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed.WithContext(context);
  {
    MutexLock lock(index_mutex_);
    logs_.erase(attempt_id);
  }
  return env_.SyncDir(options_.folder).WithContext(context);
}

Status Spool::Write(const std::string& attempt_id, const std::string& bytes) {
  const std::string path = LogPath(attempt_id);
  uint64_t good_bytes = 0;
  bool has_tail = false;
  {
    MutexLock lock(index_mutex_);
    AttemptLog& log = logs_[attempt_id];
    good_bytes = log.good_bytes;
    has_tail = std::exchange(log.has_tail, true);
  }
  const Status status = [&]() -> Status {
    if (has_tail) PIPEYARD_RETURN_IF_ERROR(env_.Truncate(path, good_bytes));
    PIPEYARD_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, env_.OpenAppend(path));
    PIPEYARD_RETURN_IF_ERROR(file->Append(bytes));
    return file->Sync();
  }();
  if (!status.ok()) return status.WithContext(fmt::format("spool: write attempt {}", attempt_id));
  MutexLock lock(index_mutex_);
  logs_[attempt_id].has_tail = false;
  return Status::Ok();
}

std::vector<SpooledAttempt> Spool::List() const {
  MutexLock lock(index_mutex_);
  std::vector<SpooledAttempt> attempts;
  for (const auto& [attempt_id, log] : logs_) attempts.push_back(Describe(attempt_id, log));
  return attempts;
}

std::optional<SpooledAttempt> Spool::Find(const std::string& attempt_id) const {
  MutexLock lock(index_mutex_);
  const auto it = logs_.find(attempt_id);
  if (it == logs_.end()) return std::nullopt;
  return Describe(attempt_id, it->second);
}

Result<std::string> Spool::ReadPayload(const std::string& attempt_id, uint64_t offset) const {
  const std::string path = LogPath(attempt_id);
  PIPEYARD_ASSIGN_OR_RETURN(const std::string bytes, env_.ReadFile(path));
  Record record;
  if (ReadRecord(bytes, offset, record) != ReadOutcome::kRecord) {
    return DataLoss(fmt::format("spool: {} is damaged at byte {}", path, offset));
  }
  return std::string(record.payload);
}

Result<v1::Assign> Spool::ReadAssignment(const std::string& attempt_id) const {
  if (!Find(attempt_id)) return NotFound(fmt::format("spool: attempt {} is not held", attempt_id));
  PIPEYARD_ASSIGN_OR_RETURN(const std::string payload, ReadPayload(attempt_id, kMagic.size()));
  v1::Assign assign;
  if (!assign.ParseFromString(payload))
    return DataLoss(fmt::format("spool: the assignment of {} is damaged", attempt_id));
  return assign;
}

Result<v1::Frame> Spool::ReadFrame(const std::string& attempt_id, uint64_t sequence) const {
  uint64_t offset = 0;
  {
    MutexLock lock(index_mutex_);
    const auto it = logs_.find(attempt_id);
    if (it == logs_.end() || sequence == 0 || sequence > it->second.frame_offsets.size()) {
      return NotFound(fmt::format("spool: attempt {} has no frame {}", attempt_id, sequence));
    }
    offset = it->second.frame_offsets[sequence - 1];
  }
  PIPEYARD_ASSIGN_OR_RETURN(const std::string payload, ReadPayload(attempt_id, offset));
  v1::Frame frame;
  if (!frame.ParseFromString(payload)) {
    return DataLoss(fmt::format("spool: frame {} of attempt {} is damaged", sequence, attempt_id));
  }
  return frame;
}

}  // namespace pipeyard::spool
