// FaultVfs: a disk for SQLite that loses power and fails, to prove what the store promises about
// both.
//
// It wraps SQLite's default VFS. Writes go to the real files, so that every connection reads them
// back; what no sync has covered yet is remembered with what stood there before, and is undone when
// the power comes back. It is not a model of what directories lose: a file that was made stays, one
// that was deleted stays deleted.
//
//   FaultVfs disk;
//   ... open a store with SqliteOptions::vfs = disk.name(), apply ...
//   disk.CutPower();      // from here on nothing reaches the files
//   store.reset();
//   disk.RestorePower(FaultVfs::Loss::kAll, 0);
//   ... open it again ...
//
// Thread safety: Thread-safe. Ownership: outlives every connection that was opened with it.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace pipeyard::storage {

class FaultVfs {
 public:
  // What becomes of unsynced bytes: all are lost, or each sector of 512 bytes by the toss of a
  // seeded coin.
  enum class Loss { kAll, kSome };

  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  const std::string& name() const { return name_; }

  // The `index`-th write, sync, truncation or deletion from now on (from 0) fails; a failing write
  // leaves its first half behind. With `is_lasting` all that follow fail as well. `write_code` is
  // what failing writes give: SQLITE_IOERR_WRITE or SQLITE_FULL.
  void FailAt(int index, int write_code, bool is_lasting) EXCLUDES(mutex_);
  // The power is cut at the `index`-th of these operations.
  void CutPowerAt(int index) EXCLUDES(mutex_);
  // No fault is due any more. Power that was cut stays cut.
  void Heal() EXCLUDES(mutex_);
  // Whether the fault came since it was set.
  bool has_failed() const EXCLUDES(mutex_);

  void CutPower() EXCLUDES(mutex_);
  // Precondition: no connection is open.
  void RestorePower(Loss loss, uint64_t seed) EXCLUDES(mutex_);

 private:
  struct Change {
    int64_t offset = 0;  // of a truncation: the new size
    std::string before;  // what stood there, up to the end of the file
    std::string after;
    int64_t size_before = 0;
    bool is_truncation = false;
  };
  struct File;
  enum class Verdict { kGo, kFail, kDead };

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                  int* out_flags);
  static int Delete(sqlite3_vfs* vfs, const char* path, int sync_dir);
  static int Close(sqlite3_file* file);
  static int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset);
  static int Truncate(sqlite3_file* file, sqlite3_int64 size);
  static int Sync(sqlite3_file* file, int flags);

  // Counts one operation and says what becomes of it.
  Verdict Judge() REQUIRES(mutex_);
  void Remember(sqlite3_file* real, const std::string& path, Change change, int64_t size)
      REQUIRES(mutex_);
  void Undo(const std::string& path, const std::vector<Change>& changes, Loss loss,
            uint64_t& random);

  // Constant after construction.
  std::string name_;
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  sqlite3_io_methods methods_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, std::vector<Change>> unsynced_ GUARDED_BY(mutex_);
  int num_until_fault_ GUARDED_BY(mutex_) = -1;
  int write_code_ GUARDED_BY(mutex_) = 0;
  bool is_lasting_ GUARDED_BY(mutex_) = false;
  bool cuts_power_ GUARDED_BY(mutex_) = false;
  bool has_failed_ GUARDED_BY(mutex_) = false;
  bool is_dead_ GUARDED_BY(mutex_) = false;
};

}  // namespace pipeyard::storage
