#include "workloads/load/kernel_pipes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>

#include "base/status.h"
#include "base/units.h"
#include "workloads/load/file_limit.h"
#include "workloads/load/limit_files.h"

namespace pipeyard::load {
namespace {

constexpr char kMaxSize[] = "/proc/sys/fs/pipe-max-size";
constexpr char kPagesSoft[] = "/proc/sys/fs/pipe-user-pages-soft";
constexpr char kPagesHard[] = "/proc/sys/fs/pipe-user-pages-hard";

// -1 where it cannot be read.
int64_t ReadLimit(const char* path) { return ReadNumber(path).value_or(-1); }

int64_t PageBytes() { return ::sysconf(_SC_PAGESIZE); }

// Of one pipe: the kernel rounds up to a power of two.
int64_t PagesOf(int64_t pipe_bytes) {
  const int64_t pages = (pipe_bytes + PageBytes() - 1) / PageBytes();
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pages)));
}

Judgement ExplainRefusedSize(int64_t pipe_bytes, int num_pipes) {
  const int64_t max_size = ReadLimit(kMaxSize);
  if (max_size >= 0 && pipe_bytes > max_size) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe_bytes {}: fs.pipe-max-size is {} and must be at least {}, or the worker "
                    "needs CAP_SYS_RESOURCE",
                    pipe_bytes, max_size, pipe_bytes));
  }
  return NotApplicable(
      "pipe_size_limit",
      fmt::format("pipe_bytes {}: this user's pipes would exceed fs.pipe-user-pages-soft ({}) or "
                  "fs.pipe-user-pages-hard ({}); {} pages are needed for {} pipes",
                  pipe_bytes, ReadLimit(kPagesSoft), ReadLimit(kPagesHard),
                  PagesOf(pipe_bytes) * num_pipes, num_pipes));
}

Judgement ExplainRefusedPipe(int error, int num_pipes) {
  if (error == ENFILE && ReadLimit(kPagesHard) > 0) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe(2): this user's pipes exceed fs.pipe-user-pages-hard ({}), or the "
                    "system's open files fs.file-max; {} more pages are needed",
                    ReadLimit(kPagesHard), int64_t{16} * num_pipes));
  }
  return Failed("pipe_failed", ErrnoStatus("pipe", error).message());
}

}  // namespace

Judgement KernelPipes::Create(int num_pipes, int64_t pipe_bytes,
                              std::shared_ptr<KernelPipes>& pipes,
                              std::vector<MemoryLimit> memory) {
  if (pipe_bytes > INT_MAX) {
    return NotApplicable(
        "pipe_size_limit",
        fmt::format("pipe_bytes {}: a kernel pipe holds at most {} bytes", pipe_bytes, INT_MAX));
  }
  if (Judgement allowed = RaiseFileLimit(int64_t{2} * num_pipes); !allowed.ok()) return allowed;
  if (Judgement fits = TakeMemory(
          PagesOf(pipe_bytes) * PageBytes() * num_pipes,
          fmt::format("{} pipes of {}", num_pipes, FormatBytes(PagesOf(pipe_bytes) * PageBytes())),
          memory);
      !fits.ok()) {
    return fits;
  }
  // Otherwise the death of a reader kills its writers, and seems to be theirs.
  ::signal(SIGPIPE, SIG_IGN);
  pipes.reset(new KernelPipes());
  pipes->ends_.reserve(static_cast<size_t>(num_pipes));
  for (int i = 0; i < num_pipes; ++i) {
    if (Judgement added = pipes->AddPipe(pipe_bytes, num_pipes); !added.ok()) return added;
  }
  return {};
}

Judgement KernelPipes::AddPipe(int64_t pipe_bytes, int num_pipes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ExplainRefusedPipe(errno, num_pipes);
  ends_.push_back({.read = ends[0], .write = ends[1]});
  if (::fcntl(ends[1], F_GETPIPE_SZ) != pipe_bytes &&
      ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(pipe_bytes)) < 0) {
    if (errno == EPERM) return ExplainRefusedSize(pipe_bytes, num_pipes);
    return Failed("pipe_failed", ErrnoStatus("fcntl F_SETPIPE_SZ", errno).message());
  }
  const int size = ::fcntl(ends[1], F_GETPIPE_SZ);
  if (size < 0) return Failed("pipe_failed", ErrnoStatus("fcntl F_GETPIPE_SZ", errno).message());
  if (size < pipe_bytes) {
    return Void("pipe_size_not_obtained",
                fmt::format("asked for a pipe of {} bytes, the kernel gave {}", pipe_bytes, size));
  }
  size_bytes_ = size;
  return {};
}

KernelPipes::~KernelPipes() { ReleaseInParent(); }

void KernelPipes::KeepInChild(const PipeEnds& used) {
  for (int i = 0; i < static_cast<int>(ends_.size()); ++i) {
    const bool is_used = i >= used.first_pipe && i < used.first_pipe + used.num_pipes;
    if (!is_used || !used.is_writer) Close(EndsOf(i).write);
    if (!is_used || used.is_writer) Close(EndsOf(i).read);
  }
}

void KernelPipes::ReleaseInParent() {
  for (Ends& ends : ends_) {
    Close(ends.write);
    Close(ends.read);
  }
}

void KernelPipes::Close(int& end) {
  if (end < 0) return;
  ::close(end);
  end = -1;
}

}  // namespace pipeyard::load
