#include "workloads/memory/page_source.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pipeyard::memory {

int GiveBackToKernel(std::byte* address, uint64_t bytes) {
  // The region is shared memory: MADV_DONTNEED would only unmap it here.
  return ::madvise(address, bytes, MADV_REMOVE) == 0 ? 0 : errno;
}

uint64_t TouchPages(std::byte* address, uint64_t bytes) {
  static const auto host_page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (uint64_t at = 0; at < bytes; at += host_page_bytes) {
    *static_cast<volatile std::byte*>(address + at) = std::byte{0};
  }
  return (bytes + host_page_bytes - 1) / host_page_bytes;
}

}  // namespace pipeyard::memory
