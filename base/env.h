// Env: the file operations that daemons depend on for durability, behind one interface, so that
// tests make each of them fail or lose what was not synced.
//
// Thread safety: Env is thread-safe; a WritableFile is used by one thread at a time.
// Errors: every failing call returns a Status that names the operation, the path and the errno.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard {

// An open file that is appended to. Destroying it closes it without syncing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends all of `data`, or fails; after a failure the file's tail is undefined (a torn record
  // may stand there).
  virtual Status Append(std::string_view data) = 0;
  // fdatasync. What was appended before survives power loss once this returned OK.
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

// An exclusive advisory lock (flock) that is held until destruction.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Env {
 public:
  virtual ~Env() = default;

  // kNotFound where there is no such file.
  virtual Result<std::string> ReadFile(const std::string& path) = 0;
  // Opens for appending; creates the file (mode 0640) where there is none.
  virtual Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) = 0;
  // Replaces the file atomically and durably: writes path.tmp, syncs, renames, syncs the folder.
  virtual Status WriteFileAtomic(const std::string& path, std::string_view data) = 0;
  virtual Status Truncate(const std::string& path, uint64_t size_bytes) = 0;
  virtual Result<uint64_t> FileSize(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Creates `path` and missing parents (mode 0750). OK where it stands already.
  virtual Status CreateDirs(const std::string& path) = 0;
  // Names in the folder without "." and "..", sorted.
  virtual Result<std::vector<std::string>> ListDir(const std::string& path) = 0;
  virtual Status RemoveFile(const std::string& path) = 0;
  // Removes a folder with everything below it; OK where there is none.
  virtual Status RemoveTree(const std::string& path) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes entries created in, renamed into or removed from the folder durable.
  virtual Status SyncDir(const std::string& path) = 0;
  // Bytes that an unprivileged process may still write on the file system that holds `path`.
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
  // Errors: kFailedPrecondition when another process holds it.
  virtual Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) = 0;
};

// Env::CreateDirs, then syncs every folder above `path`, so that power loss leaves it there, also
// where a process made it that died before it could sync. Folders that may not be opened are passed
// over: they were not made by this user.
Status CreateDirsDurably(Env& env, const std::string& path);

// The machine's file system. The returned object lives for ever.
Env& PosixEnv();

}  // namespace pipeyard
