// FaultyEnv: a file system in memory that fails, or loses power, at a chosen step, for tests of
// what daemons promise about their disk.
//
// Model: bytes survive power loss once the file was synced after they were appended; names
// (created, renamed, removed) survive once their folder was synced. Bytes that a failed Sync left
// behind are gone for good, as on Linux, also when a later Sync succeeds. Every operation but
// Exists is one step; WriteFileAtomic is the steps of its parts.
//
// Thread safety: thread-compatible; files and locks are used from the thread that uses the Env.
// Ownership: outlives the files and locks it gave out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"

namespace pipeyard {

class FaultyEnv final : public Env {
 public:
  enum class Fault {
    kFail,       // the step fails, with EIO or the like; an Append has written half of its bytes
    kPowerLoss,  // likewise, and every step after it fails until Reboot()
  };
  // What of the unsynced state is found after Reboot().
  enum class Survives {
    kSynced,      // nothing unsynced: the worst a power loss may do
    kHalf,        // all names, and half of each file's unsynced bytes: torn tails
    kEverything,  // what a killed process leaves
  };

  // The step `step` from now (0 = the next one) meets `fault`, once.
  void Inject(Fault fault, int step);
  // True once the injected fault was met. A test's loop over steps ends when it is not.
  bool was_hit() const { return was_hit_; }
  // The machine starts again: locks are free, files that were open are dead. Also takes back an
  // injected fault.
  void Reboot(Survives what);
  void set_free_bytes(uint64_t bytes) { free_bytes_ = bytes; }

  Result<std::string> ReadFile(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override;
  Status WriteFileAtomic(const std::string& path, std::string_view data) override;
  Status Truncate(const std::string& path, uint64_t size_bytes) override;
  Result<uint64_t> FileSize(const std::string& path) override;
  bool Exists(const std::string& path) override;
  Status CreateDirs(const std::string& path) override;
  Result<std::vector<std::string>> ListDir(const std::string& path) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveTree(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDir(const std::string& path) override;
  Result<uint64_t> FreeBytes(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override;

 private:
  class File;
  class Lock;
  // What a name points to. Shared between the names before and after a rename that is not durable
  // yet, and open files.
  struct Node {
    bool is_dir = false;
    bool is_locked = false;
    std::string current;
    std::string durable;
    // Bytes [doomed_begin, doomed_end) of `current` were dropped by a failed Sync.
    size_t doomed_begin = 0;
    size_t doomed_end = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  // Counts one step; the error that it meets, if any.
  Status Step(std::string_view operation, const std::string& path);
  std::shared_ptr<Node> Find(const std::string& path) const;

  std::optional<Fault> fault_;
  int steps_left_ = 0;
  bool was_hit_ = false;
  bool has_power_ = true;
  uint64_t boot_ = 1;
  uint64_t free_bytes_ = uint64_t{1} << 40;
  Names names_;
  Names durable_names_;
};

}  // namespace pipeyard
