#include "workloads/memory/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace pipeyard::memory {

bool FutexWait(AtomicWord* word, uint32_t expected, Nanos timeout) {
  timespec relative{};
  timespec* limit = nullptr;
  if (timeout >= Nanos(0)) {
    relative.tv_sec = timeout.count() / 1'000'000'000;
    relative.tv_nsec = timeout.count() % 1'000'000'000;
    limit = &relative;
  }
  const long result = ::syscall(SYS_futex, word, FUTEX_WAIT, expected, limit, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

void FutexWake(AtomicWord* word, int count) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace pipeyard::memory
