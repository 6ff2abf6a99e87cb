#include "workloads/numa/numa_kernel.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pipeyard::numa {
namespace {

// Source: linux/mempolicy.h, asm-generic/mman-common.h (Linux 5.14).
constexpr int kStaticNodes = 1 << 15;
constexpr int kModeFlags = 7 << 13;
// The kernel reads one bit less than it is told.
constexpr unsigned long kMaxNode = kMaxNodes + 1;
// CONFIG_NODES_SHIFT is at most 10.
constexpr unsigned long kMostNodes = 1024;
constexpr int kMadvPopulateRead = 22;

class SystemKernel final : public NumaKernel {
 public:
  int Bind(void* address, uint64_t size_bytes, PolicyMode mode, NodeMask nodes) override {
    const unsigned long bits = nodes.bits();
    // Modes without nodes (local) take no flag that speaks of nodes.
    const int flags = nodes.IsEmpty() ? 0 : kStaticNodes;
    const long result = ::syscall(SYS_mbind, address, size_bytes, static_cast<int>(mode) | flags,
                                  &bits, kMaxNode, 0);
    return result == 0 ? 0 : errno;
  }

  int PopulateRead(void* address, uint64_t size_bytes) override {
    if (::madvise(address, size_bytes, kMadvPopulateRead) == 0) return 0;
    if (errno != EINVAL) return errno;
    // Kernels before 5.14: read a byte of each page.
    const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    for (uint64_t at = 0; at < size_bytes; at += page_bytes) {
      static_cast<void>(*(static_cast<volatile std::byte*>(address) + at));
    }
    return 0;
  }

  int QueryNodes(std::span<void* const> pages, std::span<int> nodes) override {
    const long result =
        ::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0);
    return result == 0 ? 0 : errno;
  }

  int SetTaskPolicy(PolicyMode mode, NodeMask nodes) override {
    const unsigned long bits = nodes.bits();
    const long result =
        ::syscall(SYS_set_mempolicy, static_cast<int>(mode), nodes.IsEmpty() ? nullptr : &bits,
                  nodes.IsEmpty() ? 0 : kMaxNode);
    return result == 0 ? 0 : errno;
  }

  int QueryTaskPolicy(PolicyMode& mode, NodeMask& nodes) override {
    // A kernel built for more nodes than we know refuses a shorter mask than its own.
    unsigned long bits[kMostNodes / (8 * sizeof(unsigned long))] = {};
    int kernel_mode = 0;
    if (::syscall(SYS_get_mempolicy, &kernel_mode, bits, kMostNodes, nullptr, 0) != 0) return errno;
    nodes = NodeMask::FromBits(bits[0]);
    mode = static_cast<PolicyMode>(kernel_mode & ~kModeFlags);
    // Before 5.14, local allocation is "preferred" without a node.
    if (mode == PolicyMode::kPreferred && nodes.IsEmpty()) mode = PolicyMode::kLocal;
    return 0;
  }
};

}  // namespace

NumaKernel& SystemNumaKernel() {
  // Never destroyed: a thread that nothing ends may still use it while the process exits.
  static SystemKernel* const kernel = new SystemKernel;
  return *kernel;
}

}  // namespace pipeyard::numa
