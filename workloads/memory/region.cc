#include "workloads/memory/region.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <string>

namespace pipeyard::memory {
namespace {

// Linux 5.14 (uapi/asm-generic/mman-common.h); not in the headers of every build machine.
constexpr int kMadvPopulateWrite = 23;
// Linux 6.1.
constexpr int kMadvCollapse = 25;

uint64_t HostPageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

Status MapStatus(int error, uint64_t bytes) {
  const std::string what = "engine region: map " + std::to_string(bytes) + " bytes";
  return error == ENOMEM ? ResourceExhausted(what + ": " + ErrnoText(error))
                         : ErrnoStatus(what, error);
}

// Best effort, of the whole huge pages within; the bytes that they make up. The kernel takes a huge
// page from the node that holds most of what it replaces, or none: where the small pages are bound
// to one node nothing moves to another.
uint64_t JoinPages(std::byte* begin, std::byte* end) {
  constexpr uint64_t kHugeBytes = RegionLayout::kMaxAlignment;
  uint64_t joined_bytes = 0;
  for (uintptr_t at = AlignUp(reinterpret_cast<uintptr_t>(begin), kHugeBytes);
       at + kHugeBytes <= reinterpret_cast<uintptr_t>(end); at += kHugeBytes) {
    // Where it is refused the small pages stay: slower, and nothing else.
    if (::madvise(reinterpret_cast<void*>(at), kHugeBytes, kMadvCollapse) == 0) {
      joined_bytes += kHugeBytes;
    }
  }
  return joined_bytes;
}

}  // namespace

uint64_t RegionLayout::Add(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t offset = AlignUp(next_offset_, alignment);
  next_offset_ = offset + size_bytes;
  return offset;
}

Result<std::unique_ptr<Region>> Region::Create(const RegionLayout& layout) {
  const uint64_t size_bytes = AlignUp(layout.size_bytes(), HostPageBytes());
  const uint64_t mapping_bytes = size_bytes + RegionLayout::kMaxAlignment;
  // The shared pages begin at `base` itself: a huge page can be mapped only where its address and
  // its offset in the mapping agree.
  void* reserved =
      ::mmap(nullptr, mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MapStatus(errno, mapping_bytes);
  auto* first = static_cast<std::byte*>(reserved);
  auto* base = reinterpret_cast<std::byte*>(
      AlignUp(reinterpret_cast<uintptr_t>(first), RegionLayout::kMaxAlignment));
  if (::mmap(base, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, mapping_bytes);
    return MapStatus(error, size_bytes);
  }
  new (base)
      RegionHeader{RegionHeader::kMagic, RegionHeader::kVersion, sizeof(RegionHeader), size_bytes};
  return std::unique_ptr<Region>(new Region(first, mapping_bytes, base, size_bytes));
}

Region::~Region() { ::munmap(mapping_, mapping_bytes_); }

Status Region::Populate(uint64_t offset, uint64_t size_bytes) {
  const uint64_t page_bytes = HostPageBytes();
  const uint64_t begin = offset / page_bytes * page_bytes;
  const uint64_t end = AlignUp(offset + size_bytes, page_bytes);
  if (::madvise(base_ + begin, end - begin, kMadvPopulateWrite) != 0) {
    if (errno != EINVAL) return ErrnoStatus("engine region: populate", errno);
    // Kernels before 5.14: touch every page. Nothing else uses the region yet.
    for (uint64_t at = begin; at < end; at += page_bytes) {
      volatile std::byte* byte = base_ + at;
      *byte = *byte;
    }
  }
  huge_bytes_ += JoinPages(base_ + begin, base_ + end);
  return Status::Ok();
}

Status Region::CheckHeader() const {
  const auto* header = At<RegionHeader>(0);
  if (header->magic != RegionHeader::kMagic) return DataLoss("engine region: wrong magic");
  if (header->version != RegionHeader::kVersion) {
    return DataLoss("engine region: version " + std::to_string(header->version) +
                    ", this program has " + std::to_string(RegionHeader::kVersion));
  }
  if (header->header_bytes != sizeof(RegionHeader) || header->size_bytes != size_bytes_) {
    return DataLoss("engine region: the header's sizes do not match the mapping");
  }
  return Status::Ok();
}

}  // namespace pipeyard::memory
