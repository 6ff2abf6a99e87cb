// NumaKernel: the system calls of NUMA placement behind one small edge, so that tests can be a
// machine with several nodes.
//
// The calls are made raw: libnuma would add a library for three calls, and its headers lack newer
// policies. Constants are ours. Thread safety: implementations are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "workloads/numa/node_mask.h"

namespace pipeyard::numa {

// Source: linux/mempolicy.h.
enum class PolicyMode : int {
  kDefault = 0,
  kPreferred = 1,
  kBind = 2,
  kInterleave = 3,
  kLocal = 4,
  kPreferredMany = 5,
  kWeightedInterleave = 6,
};

class NumaKernel {
 public:
  virtual ~NumaKernel() = default;

  // mbind(2), with MPOL_F_STATIC_NODES where `nodes` is not empty. Returns 0 or an errno. The
  // caller has checked `nodes` against the topology.
  virtual int Bind(void* address, uint64_t size_bytes, PolicyMode mode, NodeMask nodes) = 0;
  // Maps the pages of the range into this process where they exist (MADV_POPULATE_READ): move_pages
  // knows only what the caller has touched. It fills holes, so it is asked only for pages that are
  // known to be allocated. Returns 0 or an errno.
  virtual int PopulateRead(void* address, uint64_t size_bytes) = 0;
  // move_pages(2) without moving: for each page its node, or a negative errno (-ENOENT: not
  // present). Returns 0 or an errno.
  virtual int QueryNodes(std::span<void* const> pages, std::span<int> nodes) = 0;
  // set_mempolicy(2) and get_mempolicy(2) of the calling thread. Nodes are empty for kDefault and
  // kLocal. Return 0 or an errno.
  virtual int SetTaskPolicy(PolicyMode mode, NodeMask nodes) = 0;
  virtual int QueryTaskPolicy(PolicyMode& mode, NodeMask& nodes) = 0;
};

// The machine's. Lives for ever.
NumaKernel& SystemNumaKernel();

// A run of pages that belongs to one node.
struct PageRange {
  NodeId node = 0;
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
};

}  // namespace pipeyard::numa
