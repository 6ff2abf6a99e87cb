#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/env.h"

namespace pipeyard {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0640;
constexpr mode_t kDirMode = 0750;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

Status WriteAll(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(fmt::format("write {}", path), errno);
    }
    data.remove_prefix(static_cast<size_t>(written));
  }
  return Status::Ok();
}

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Status Append(std::string_view data) override { return WriteAll(fd_, data, path_); }

  Status Sync() override {
    if (::fdatasync(fd_) != 0) return ErrnoStatus(fmt::format("fdatasync {}", path_), errno);
    return Status::Ok();
  }

  Status Close() override {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) return ErrnoStatus(fmt::format("close {}", path_), errno);
    return Status::Ok();
  }

 private:
  int fd_;
  const std::string path_;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}

 private:
  Fd fd_;  // closing releases the flock
};

class PosixEnvironment final : public Env {
 public:
  Result<std::string> ReadFile(const std::string& path) override {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus(fmt::format("open {}", path), errno);
    std::string data;
    char buffer[65536];
    for (;;) {
      const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
      if (n < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(fmt::format("read {}", path), errno);
      }
      if (n == 0) return data;
      data.append(buffer, static_cast<size_t>(n));
    }
  }

  Result<std::unique_ptr<WritableFile>> OpenAppend(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
    if (fd < 0) return ErrnoStatus(fmt::format("open {}", path), errno);
    return std::unique_ptr<WritableFile>(std::make_unique<PosixWritableFile>(fd, path));
  }

  Status WriteFileAtomic(const std::string& path, std::string_view data) override {
    const std::string temporary = path + ".tmp";
    {
      const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode));
      if (fd.get() < 0) return ErrnoStatus(fmt::format("open {}", temporary), errno);
      PIPEYARD_RETURN_IF_ERROR(WriteAll(fd.get(), data, temporary));
      if (::fdatasync(fd.get()) != 0)
        return ErrnoStatus(fmt::format("fdatasync {}", temporary), errno);
    }
    PIPEYARD_RETURN_IF_ERROR(Rename(temporary, path));
    return SyncDir(fs::path(path).parent_path().string());
  }

  Status Truncate(const std::string& path, uint64_t size_bytes) override {
    if (::truncate(path.c_str(), static_cast<off_t>(size_bytes)) != 0) {
      return ErrnoStatus(fmt::format("truncate {}", path), errno);
    }
    return Status::Ok();
  }

  Result<uint64_t> FileSize(const std::string& path) override {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(fmt::format("stat {}", path), errno);
    return static_cast<uint64_t>(info.st_size);
  }

  bool Exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  Status CreateDirs(const std::string& path) override {
    std::string prefix;
    for (const fs::path& part : fs::path(path)) {
      prefix = (fs::path(prefix) / part).string();
      if (prefix.empty() || ::mkdir(prefix.c_str(), kDirMode) == 0 || errno == EEXIST) continue;
      return ErrnoStatus(fmt::format("mkdir {}", prefix), errno);
    }
    std::error_code error;
    if (!fs::is_directory(path, error)) return ErrnoStatus(fmt::format("mkdir {}", path), ENOTDIR);
    return Status::Ok();
  }

  Result<std::vector<std::string>> ListDir(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) return ErrnoStatus(fmt::format("list {}", path), error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  Status RemoveFile(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return ErrnoStatus(fmt::format("unlink {}", path), errno);
    return Status::Ok();
  }

  Status RemoveTree(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return ErrnoStatus(fmt::format("remove {}", path), error.value());
    return Status::Ok();
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return ErrnoStatus(fmt::format("rename {} to {}", from, to), errno);
    }
    return Status::Ok();
  }

  Status SyncDir(const std::string& path) override {
    const std::string folder = path.empty() ? "." : path;
    const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus(fmt::format("open {}", folder), errno);
    if (::fsync(fd.get()) != 0) return ErrnoStatus(fmt::format("fsync {}", folder), errno);
    return Status::Ok();
  }

  Result<uint64_t> FreeBytes(const std::string& path) override {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0)
      return ErrnoStatus(fmt::format("statvfs {}", path), errno);
    return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  }

  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode);
    if (fd < 0) return ErrnoStatus(fmt::format("open {}", path), errno);
    auto lock = std::make_unique<PosixFileLock>(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return FailedPrecondition(fmt::format("lock {}: another process holds it", path));
      return ErrnoStatus(fmt::format("flock {}", path), errno);
    }
    return std::unique_ptr<FileLock>(std::move(lock));
  }
};

}  // namespace

Env& PosixEnv() {
  // Never destroyed: destructors of static objects may still use it.
  static PosixEnvironment* const environment = new PosixEnvironment;
  return *environment;
}

}  // namespace pipeyard
