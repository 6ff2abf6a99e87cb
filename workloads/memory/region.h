// Region: the one MAP_SHARED anonymous mapping that everything of the engine lives in. It is made
// before any fork, so that workers may be threads or processes. RegionLayout says beforehand where
// each part goes.
//
//   0        RegionHeader
//   4096...  parts in the order of RegionLayout::Add(), each at its own alignment
//   end      rounded up to a page
//
// It is not an allocator: parts are never given back.
// Thread safety: RegionLayout: thread-compatible. Region: immutable after Create() and Populate().
// Ownership: the Region that Create() returned unmaps at destruction, in its own process only; a
// forked child has its own copy of the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "workloads/memory/shared.h"

namespace pipeyard::memory {

// SHARED
struct RegionHeader {
  static constexpr uint64_t kMagic = 0x3130'4452'4159'5050;  // "PPYARD01", little-endian
  static constexpr uint32_t kVersion = 1;

  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t size_bytes;
};
PIPEYARD_CHECK_SHARED(RegionHeader);

class RegionLayout {
 public:
  // The header has a page of its own.
  static constexpr uint64_t kHeaderReserve = 4096;
  static constexpr uint64_t kMaxAlignment = 2 << 20;

  // Returns the offset of a part of `size_bytes`. `alignment` is a power of two, at most
  // kMaxAlignment.
  uint64_t Add(uint64_t size_bytes, uint64_t alignment);
  uint64_t size_bytes() const { return next_offset_; }

 private:
  uint64_t next_offset_ = kHeaderReserve;
};

class Region {
 public:
  // Maps zeroed memory, aligned to kMaxAlignment; nothing of it is populated yet, so that parts can
  // be bound to nodes first. Errors: kResourceExhausted when the machine will not give that much.
  static Result<std::unique_ptr<Region>> Create(const RegionLayout& layout);

  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::byte* base() const { return base_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // The object at `offset`, an offset that RegionLayout::Add() returned. Zeroed memory is its
  // initial state.
  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  // Makes the pages of [offset, offset + size_bytes) present and writable here, so that neither a
  // trial nor each forked child pays for first touch. Then asks the kernel (6.1 and later) to join
  // them to huge pages where the range holds whole ones: a child takes one fault, and one entry of
  // its TLB, for 2 MiB. Errors: kResourceExhausted when memory runs out.
  Status Populate(uint64_t offset, uint64_t size_bytes);

  // What Populate() could join to huge pages.
  uint64_t huge_bytes() const { return huge_bytes_; }

  // Magic, version and size of the header. Errors: kDataLoss says which is wrong.
  Status CheckHeader() const;

 private:
  Region(std::byte* mapping, uint64_t mapping_bytes, std::byte* base, uint64_t size_bytes)
      : mapping_(mapping), mapping_bytes_(mapping_bytes), base_(base), size_bytes_(size_bytes) {}

  std::byte* const mapping_;
  const uint64_t mapping_bytes_;
  std::byte* const base_;
  const uint64_t size_bytes_;
  uint64_t huge_bytes_ = 0;
};

}  // namespace pipeyard::memory
