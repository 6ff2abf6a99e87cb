#include "workloads/load/churn_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace pipeyard::load {
namespace {

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

int KernelChurn::Create(Worker& worker, int64_t bytes, Pipe& pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return errno;
  pipe = {.read = ends[0], .write = ends[1]};
  const int error = Resize(worker, pipe, bytes);
  if (error != 0) Close(worker, pipe);
  return error;
}

void KernelChurn::Close(Worker& /*worker*/, Pipe& pipe) {
  ::close(pipe.write);
  ::close(pipe.read);
  pipe = {};
}

int KernelChurn::Resize(Worker& /*worker*/, Pipe& pipe, int64_t bytes) {
  return ::fcntl(pipe.write, F_SETPIPE_SZ, static_cast<int>(bytes)) < 0 ? errno : 0;
}

int KernelChurn::Fill(Worker& /*worker*/, Pipe& pipe, int64_t slots) {
  const std::vector<std::byte> page(PageBytes());
  for (int64_t i = 0; i < slots; ++i) {
    if (::write(pipe.write, page.data(), page.size()) < 0) return errno;
  }
  return 0;
}

int EngineChurn::Create(Worker& worker, int64_t bytes, Pipe& pipe) {
  const pipe::CreatedPipe created =
      target_->engine().CreatePipe(*worker, {.bytes = static_cast<uint64_t>(bytes)});
  if (created.ok()) pipe = created.pipe;
  return created.error;
}

void EngineChurn::Close(Worker& worker, Pipe& pipe) {
  static_cast<void>(pipe.CloseWriter(*worker));
  static_cast<void>(pipe.CloseReader(*worker));
  pipe = {};
}

int EngineChurn::Resize(Worker& worker, Pipe& pipe, int64_t bytes) {
  const int64_t resized = pipe.Resize(*worker, static_cast<uint64_t>(bytes));
  return resized < 0 ? static_cast<int>(-resized) : 0;
}

int EngineChurn::Fill(Worker& worker, Pipe& pipe, int64_t slots) {
  const std::vector<std::byte> page(PageBytes());
  for (int64_t i = 0; i < slots; ++i) {
    const pipe::IoResult written =
        pipe.Write(*worker, page.data(), page.size(), pipe::IoMode::kNonblocking);
    if (!written.ok()) return written.error;
  }
  return 0;
}

}  // namespace pipeyard::load
