#include "workloads/pipe/differential/kernel_system.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>

namespace pipeyard::pipe::differential {
namespace {

// From linux/fs.h; older headers do not have it.
constexpr int kRwfNoSignal = 0x100;

// What poll is asked for: all that it can say, but for the other names of POLLIN and POLLOUT.
constexpr short kEvents = POLLIN | POLLPRI | POLLOUT | POLLRDHUP;

thread_local volatile sig_atomic_t t_num_sigpipes = 0;

void CountSigpipe(int) { t_num_sigpipes = t_num_sigpipes + 1; }
void EndCall(int) {}

// Without SA_RESTART: a signal ends the call that waits.
void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

Outcome ResultOf(int64_t result) { return {result >= 0 ? result : -errno, false}; }

int StatusFlags(FileFlags flags) {
  return (flags.is_nonblocking ? O_NONBLOCK : 0) | (flags.is_packet ? O_DIRECT : 0);
}

void CloseFd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

KernelSystem::KernelSystem() {
  fds_.fill(-1);
  epolls_.fill(-1);
  Handle(SIGPIPE, CountSigpipe);
  Handle(SIGUSR1, EndCall);
}

KernelSystem::~KernelSystem() { Reset(); }

bool KernelSystem::CanWriteQuietly() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  char byte = 0;
  const iovec part = {&byte, 1};
  const bool is_known = ::pwritev2(fds[1], &part, 1, -1, kRwfNoSignal) == 1;
  ::close(fds[0]);
  ::close(fds[1]);
  return is_known;
}

Outcome KernelSystem::Create(int, int read_file, int write_file, FileFlags flags) {
  int fds[2];
  const Outcome outcome = ResultOf(::pipe2(fds, O_CLOEXEC | StatusFlags(flags)));
  if (outcome.value == 0) {
    Fd(read_file) = fds[0];
    Fd(write_file) = fds[1];
  }
  return outcome;
}

Outcome KernelSystem::Open(int, int file, PipeEnd end, int new_file) {
  const std::string path = "/proc/self/fd/" + std::to_string(Fd(file));
  const int mode = end == PipeEnd::kRead ? O_RDONLY : O_WRONLY;
  const int fd = ::open(path.c_str(), mode | O_CLOEXEC | StatusFlags(kFlagsOfOpen));
  if (fd < 0) return ResultOf(fd);
  Fd(new_file) = fd;
  return {};
}

Outcome KernelSystem::Close(int, int file) {
  const Outcome outcome = ResultOf(::close(Fd(file)));
  Fd(file) = -1;
  return outcome;
}

Outcome KernelSystem::Write(int, int file, const char* data, size_t size, bool is_quiet) {
  const sig_atomic_t before = t_num_sigpipes;
  Outcome outcome;
  if (is_quiet) {
    const iovec part = {const_cast<char*>(data), size};
    outcome = ResultOf(::pwritev2(Fd(file), &part, 1, -1, kRwfNoSignal));
  } else {
    outcome = ResultOf(::write(Fd(file), data, size));
  }
  outcome.is_sigpipe = t_num_sigpipes != before;
  return outcome;
}

Outcome KernelSystem::Read(int, int file, char* data, size_t size) {
  return ResultOf(::read(Fd(file), data, size));
}

Outcome KernelSystem::SetFlags(int, int file, FileFlags flags) {
  return ResultOf(::fcntl(Fd(file), F_SETFL, StatusFlags(flags)));
}

Outcome KernelSystem::Resize(int, int file, uint32_t bytes) {
  return ResultOf(::fcntl(Fd(file), F_SETPIPE_SZ, static_cast<int>(bytes)));
}

Outcome KernelSystem::Capacity(int, int file) { return ResultOf(::fcntl(Fd(file), F_GETPIPE_SZ)); }

Outcome KernelSystem::QueuedBytes(int, int file) {
  int bytes = 0;
  const int result = ::ioctl(Fd(file), FIONREAD, &bytes);
  return ResultOf(result == 0 ? bytes : -1);
}

Outcome KernelSystem::Poll(int, FileSet files, bool is_waiting, PollMasks& masks) {
  pollfd entries[kMaxFiles];
  nfds_t count = 0;
  masks.fill(0);
  for (int file = 0; file < kMaxFiles; ++file) {
    if ((files >> file & 1) != 0) entries[count++] = {Fd(file), kEvents, 0};
  }
  const Outcome outcome = ResultOf(::poll(entries, count, is_waiting ? -1 : 0));
  if (outcome.value < 0) return outcome;
  count = 0;
  for (size_t file = 0; file < kMaxFiles; ++file) {
    if ((files >> file & 1) != 0) masks[file] = static_cast<uint16_t>(entries[count++].revents);
  }
  return outcome;
}

Outcome KernelSystem::Watch(int actor, int file) {
  int& epoll = epolls_[static_cast<size_t>(actor)];
  if (epoll < 0) epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = static_cast<uint32_t>(kEvents) | static_cast<uint32_t>(EPOLLET);
  event.data.u32 = static_cast<uint32_t>(file);
  return ResultOf(::epoll_ctl(epoll, EPOLL_CTL_ADD, Fd(file), &event));
}

Outcome KernelSystem::TakeReady(int actor, PollMasks& masks) {
  masks.fill(0);
  const int epoll = epolls_[static_cast<size_t>(actor)];
  if (epoll < 0) return {};
  epoll_event events[kMaxFiles];
  const Outcome outcome = ResultOf(::epoll_wait(epoll, events, kMaxFiles, 0));
  for (int64_t i = 0; i < outcome.value; ++i) {
    masks[events[i].data.u32] = static_cast<uint16_t>(events[i].events);
  }
  return outcome;
}

void KernelSystem::Interrupt(int actor) {
  ::syscall(SYS_tgkill, ::getpid(), ThreadOf(actor), SIGUSR1);
}

void KernelSystem::Reset() {
  for (int& fd : fds_) CloseFd(fd);
  for (int& epoll : epolls_) CloseFd(epoll);
}

}  // namespace pipeyard::pipe::differential
