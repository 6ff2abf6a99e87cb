#include "workloads/load/kernel_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/status.h"
#include "base/units.h"

namespace pipeyard::load {
namespace {

constexpr char kMaxSize[] = "/proc/sys/fs/pipe-max-size";
constexpr char kPagesSoft[] = "/proc/sys/fs/pipe-user-pages-soft";
constexpr char kPagesHard[] = "/proc/sys/fs/pipe-user-pages-hard";

// -1 where it cannot be read.
int64_t ReadLimit(const char* path) {
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return -1;
  char text[32] = "";
  const bool has_line = std::fgets(text, sizeof(text), file) != nullptr;
  std::fclose(file);
  return has_line ? std::strtoll(text, nullptr, 10) : -1;
}

Judgement ExplainRefusedSize(int64_t pipe_bytes) {
  const int64_t max_size = ReadLimit(kMaxSize);
  if (max_size >= 0 && pipe_bytes > max_size) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe_bytes {}: fs.pipe-max-size is {} and must be at least {}, or the worker "
                    "needs CAP_SYS_RESOURCE",
                    pipe_bytes, max_size, pipe_bytes));
  }
  const int64_t pages = (pipe_bytes + ::sysconf(_SC_PAGESIZE) - 1) / ::sysconf(_SC_PAGESIZE);
  return NotApplicable(
      "pipe_size_limit",
      fmt::format("pipe_bytes {}: this user's pipes would exceed fs.pipe-user-pages-soft ({}) or "
                  "fs.pipe-user-pages-hard ({}); {} more pages are needed",
                  pipe_bytes, ReadLimit(kPagesSoft), ReadLimit(kPagesHard), pages));
}

Judgement ExplainRefusedPipe(int error) {
  if (error == ENFILE && ReadLimit(kPagesHard) > 0) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe(2): this user's pipes exceed fs.pipe-user-pages-hard ({}), or the "
                    "system's open files fs.file-max; 16 more pages are needed",
                    ReadLimit(kPagesHard)));
  }
  return Failed("pipe_failed", ErrnoStatus("pipe", error).message());
}

}  // namespace

Judgement KernelPipe::Create(int64_t pipe_bytes, std::shared_ptr<KernelPipe>& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ExplainRefusedPipe(errno);
  pipe.reset(new KernelPipe(ends[0], ends[1]));
  if (pipe_bytes > INT_MAX) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe_bytes {}: a kernel pipe holds at most {} bytes", pipe_bytes, INT_MAX));
  }
  if (::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(pipe_bytes)) < 0) {
    if (errno == EPERM) return ExplainRefusedSize(pipe_bytes);
    return Failed("pipe_failed", ErrnoStatus("fcntl F_SETPIPE_SZ", errno).message());
  }
  const int size = ::fcntl(ends[1], F_GETPIPE_SZ);
  if (size < 0) return Failed("pipe_failed", ErrnoStatus("fcntl F_GETPIPE_SZ", errno).message());
  if (size < pipe_bytes) {
    return Void("pipe_size_not_obtained",
                fmt::format("asked for a pipe of {} bytes, the kernel gave {}", pipe_bytes, size));
  }
  pipe->size_bytes_ = size;
  return {};
}

KernelPipe::~KernelPipe() {
  Close(write_end_);
  Close(read_end_);
}

int64_t KernelPipe::Write(Worker& /*worker*/, const std::byte* data, size_t size) {
  const ssize_t written = ::write(write_end_, data, size);
  return written < 0 ? -errno : written;
}

int64_t KernelPipe::Read(Worker& /*worker*/, std::byte* data, size_t size) {
  const ssize_t read = ::read(read_end_, data, size);
  return read < 0 ? -errno : read;
}

void KernelPipe::CloseWriteEnd(Worker& /*worker*/) { Close(write_end_); }

void KernelPipe::CloseReadEnd(Worker& /*worker*/) { Close(read_end_); }

void KernelPipe::Close(int& end) {
  if (end < 0) return;
  ::close(end);
  end = -1;
}

}  // namespace pipeyard::load
