#include "storage/testing/fault_vfs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace pipeyard::storage {
namespace {

constexpr size_t kSectorBytes = 512;

// SplitMix64 (Steele, Lea & Flood 2014).
uint64_t NextRandom(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void MustSucceed(bool succeeded, const char* what) {
  if (succeeded) return;
  std::perror(what);
  std::abort();
}

void WriteAt(int fd, const std::string& data, size_t begin, size_t size, int64_t offset) {
  const ssize_t written = ::pwrite(fd, data.data() + begin, size, offset);
  MustSucceed(written == static_cast<ssize_t>(size), "pwrite");
}

std::string NewName() {
  static std::atomic<int> num_made{0};
  return fmt::format("pipeyard-fault-{}", num_made.fetch_add(1));
}

}  // namespace

// The wrapper of one open file; the real one follows it in memory.
struct FaultVfs::File {
  sqlite3_file base;
  FaultVfs* vfs;
  std::string* path;  // empty for a temporary file, which no power loss is told of
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  static File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
  static sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real(); }
};

FaultVfs::FaultVfs() : name_(NewName()), real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
  vfs_.pNext = nullptr;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
  vfs_.xOpen = &FaultVfs::Open;
  vfs_.xDelete = &FaultVfs::Delete;
  methods_ = {};
  methods_.iVersion = 2;  // without memory-mapped reads, which would pass by
  methods_.xClose = &FaultVfs::Close;
  methods_.xRead = [](sqlite3_file* f, void* data, int size, sqlite3_int64 offset) {
    return File::Real(f)->pMethods->xRead(File::Real(f), data, size, offset);
  };
  methods_.xWrite = &FaultVfs::Write;
  methods_.xTruncate = &FaultVfs::Truncate;
  methods_.xSync = &FaultVfs::Sync;
  methods_.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
    return File::Real(f)->pMethods->xFileSize(File::Real(f), size);
  };
  methods_.xLock = [](sqlite3_file* f, int level) {
    return File::Real(f)->pMethods->xLock(File::Real(f), level);
  };
  methods_.xUnlock = [](sqlite3_file* f, int level) {
    return File::Real(f)->pMethods->xUnlock(File::Real(f), level);
  };
  methods_.xCheckReservedLock = [](sqlite3_file* f, int* out) {
    return File::Real(f)->pMethods->xCheckReservedLock(File::Real(f), out);
  };
  methods_.xFileControl = [](sqlite3_file* f, int op, void* argument) {
    return File::Real(f)->pMethods->xFileControl(File::Real(f), op, argument);
  };
  methods_.xSectorSize = [](sqlite3_file* f) {
    return File::Real(f)->pMethods->xSectorSize(File::Real(f));
  };
  methods_.xDeviceCharacteristics = [](sqlite3_file* f) {
    return File::Real(f)->pMethods->xDeviceCharacteristics(File::Real(f));
  };
  methods_.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    return File::Real(f)->pMethods->xShmMap(File::Real(f), page, size, extend, out);
  };
  methods_.xShmLock = [](sqlite3_file* f, int offset, int n, int flags) {
    return File::Real(f)->pMethods->xShmLock(File::Real(f), offset, n, flags);
  };
  methods_.xShmBarrier = [](sqlite3_file* f) {
    File::Real(f)->pMethods->xShmBarrier(File::Real(f));
  };
  methods_.xShmUnmap = [](sqlite3_file* f, int delete_flag) {
    return File::Real(f)->pMethods->xShmUnmap(File::Real(f), delete_flag);
  };
  MustSucceed(sqlite3_vfs_register(&vfs_, /*makeDflt=*/0) == SQLITE_OK, "sqlite3_vfs_register");
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(&vfs_); }

void FaultVfs::FailAt(int index, int write_code, bool is_lasting) {
  MutexLock lock(mutex_);
  num_until_fault_ = index;
  write_code_ = write_code;
  is_lasting_ = is_lasting;
  cuts_power_ = false;
  has_failed_ = false;
}

void FaultVfs::CutPowerAt(int index) {
  MutexLock lock(mutex_);
  num_until_fault_ = index;
  cuts_power_ = true;
  has_failed_ = false;
}

void FaultVfs::Heal() {
  MutexLock lock(mutex_);
  num_until_fault_ = -1;
}

bool FaultVfs::has_failed() const {
  MutexLock lock(mutex_);
  return has_failed_;
}

void FaultVfs::CutPower() {
  MutexLock lock(mutex_);
  is_dead_ = true;
}

void FaultVfs::RestorePower(Loss loss, uint64_t seed) {
  MutexLock lock(mutex_);
  uint64_t random = seed;
  for (const auto& [path, changes] : unsynced_) Undo(path, changes, loss, random);
  unsynced_.clear();
  is_dead_ = false;
  num_until_fault_ = -1;
}

FaultVfs::Verdict FaultVfs::Judge() {
  if (is_dead_) return Verdict::kDead;
  if (num_until_fault_ < 0) return Verdict::kGo;
  if (num_until_fault_ > 0) {
    --num_until_fault_;
    return Verdict::kGo;
  }
  has_failed_ = true;
  if (cuts_power_) {
    is_dead_ = true;
    return Verdict::kDead;
  }
  if (!is_lasting_) num_until_fault_ = -1;
  return Verdict::kFail;
}

int FaultVfs::Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                   int* out_flags) {
  auto* self = static_cast<FaultVfs*>(vfs->pAppData);
  File* wrapper = new (file) File();
  wrapper->vfs = self;
  const int code = self->real_->xOpen(self->real_, path, wrapper->real(), flags, out_flags);
  if (code != SQLITE_OK) return code;
  wrapper->path = new std::string(path == nullptr ? "" : path);
  wrapper->base.pMethods = &self->methods_;
  return SQLITE_OK;
}

int FaultVfs::Delete(sqlite3_vfs* vfs, const char* path, int) {
  auto* self = static_cast<FaultVfs*>(vfs->pAppData);
  MutexLock lock(self->mutex_);
  if (self->Judge() != Verdict::kGo) return SQLITE_IOERR_DELETE;
  const int code = self->real_->xDelete(self->real_, path, /*syncDir=*/0);
  if (code == SQLITE_OK) self->unsynced_.erase(path);
  return code;
}

int FaultVfs::Close(sqlite3_file* file) {
  File* wrapper = File::Of(file);
  delete wrapper->path;
  sqlite3_file* real = wrapper->real();
  return real->pMethods == nullptr ? SQLITE_OK : real->pMethods->xClose(real);
}

int FaultVfs::Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  File* wrapper = File::Of(file);
  FaultVfs* self = wrapper->vfs;
  MutexLock lock(self->mutex_);
  const Verdict verdict = self->Judge();
  if (verdict == Verdict::kDead) return SQLITE_IOERR_WRITE;
  if (verdict == Verdict::kFail) size /= 2;
  Change change;
  change.offset = offset;
  change.after.assign(static_cast<const char*>(data), static_cast<size_t>(size));
  self->Remember(wrapper->real(), *wrapper->path, std::move(change), size);
  const int code = wrapper->real()->pMethods->xWrite(wrapper->real(), data, size, offset);
  return verdict == Verdict::kFail ? self->write_code_ : code;
}

int FaultVfs::Truncate(sqlite3_file* file, sqlite3_int64 size) {
  File* wrapper = File::Of(file);
  FaultVfs* self = wrapper->vfs;
  MutexLock lock(self->mutex_);
  if (self->Judge() != Verdict::kGo) return SQLITE_IOERR_TRUNCATE;
  Change change;
  change.offset = size;
  change.is_truncation = true;
  self->Remember(wrapper->real(), *wrapper->path, std::move(change), INT64_MAX - size);
  return wrapper->real()->pMethods->xTruncate(wrapper->real(), size);
}

int FaultVfs::Sync(sqlite3_file* file, int) {
  File* wrapper = File::Of(file);
  FaultVfs* self = wrapper->vfs;
  MutexLock lock(self->mutex_);
  if (self->Judge() != Verdict::kGo) return SQLITE_IOERR_FSYNC;
  // Real syncing would only cost time: the machine that runs the test keeps its power.
  self->unsynced_.erase(*wrapper->path);
  return SQLITE_OK;
}

void FaultVfs::Remember(sqlite3_file* real, const std::string& path, Change change, int64_t size) {
  if (path.empty()) return;
  sqlite3_int64 file_size = 0;
  MustSucceed(real->pMethods->xFileSize(real, &file_size) == SQLITE_OK, "xFileSize");
  change.size_before = file_size;
  const int64_t standing = std::clamp<int64_t>(file_size - change.offset, 0, size);
  change.before.resize(static_cast<size_t>(standing));
  if (standing > 0) {
    const int code = real->pMethods->xRead(real, change.before.data(), static_cast<int>(standing),
                                           change.offset);
    MustSucceed(code == SQLITE_OK, "xRead");
  }
  unsynced_[path].push_back(std::move(change));
}

void FaultVfs::Undo(const std::string& path, const std::vector<Change>& changes, Loss loss,
                    uint64_t& random) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  MustSucceed(fd >= 0, path.c_str());
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    MustSucceed(::ftruncate(fd, change->size_before) == 0, "ftruncate");
    WriteAt(fd, change->before, 0, change->before.size(), change->offset);
  }
  for (const Change& change : changes) {
    if (loss == Loss::kAll) break;
    if (change.is_truncation) {
      if (NextRandom(random) % 2 == 0) {
        MustSucceed(::ftruncate(fd, change.offset) == 0, "ftruncate");
      }
      continue;
    }
    for (size_t begin = 0; begin < change.after.size(); begin += kSectorBytes) {
      if (NextRandom(random) % 2 == 0) continue;
      WriteAt(fd, change.after, begin, std::min(kSectorBytes, change.after.size() - begin),
              change.offset + static_cast<int64_t>(begin));
    }
  }
  MustSucceed(::close(fd) == 0, "close");
}

}  // namespace pipeyard::storage
