// FakeNumaKernel: a machine with several nodes, for tests. Memory that was bound lies on the node
// it was bound to, unless a test says otherwise; everything else lies on node 0. Calls are
// recorded.
//
// Thread safety: confined to one thread.
#pragma once

#include <cerrno>
#include <map>
#include <vector>

#include "workloads/numa/numa_kernel.h"

namespace pipeyard::numa {

class FakeNumaKernel final : public NumaKernel {
 public:
  int Bind(void* address, uint64_t size_bytes, PolicyMode, NodeMask nodes) override {
    if (bind_error != 0) return bind_error;
    bound.push_back({nodes.Nodes().front(), static_cast<std::byte*>(address), size_bytes});
    return 0;
  }
  int PopulateRead(void* address, uint64_t size_bytes) override {
    populated.push_back({-1, static_cast<std::byte*>(address), size_bytes});
    return 0;
  }
  int QueryNodes(std::span<void* const> pages, std::span<int> nodes) override {
    if (query_error != 0) return query_error;
    for (size_t i = 0; i < pages.size(); ++i) {
      if (const auto stray = strays.find(pages[i]); stray != strays.end()) {
        nodes[i] = stray->second;
        continue;
      }
      nodes[i] = 0;
      for (const PageRange& range : bound) {
        if (pages[i] >= range.address && pages[i] < range.address + range.size_bytes)
          nodes[i] = range.node;
      }
      num_queried += 1;
    }
    return 0;
  }
  int SetTaskPolicy(PolicyMode mode, NodeMask nodes) override {
    if (policy_error != 0) return policy_error;
    policy_mode = mode;
    policy_nodes = nodes;
    return 0;
  }
  int QueryTaskPolicy(PolicyMode& mode, NodeMask& nodes) override {
    mode = policy_mode;
    nodes = policy_nodes;
    return 0;
  }

  int policy_error = 0;
  PolicyMode policy_mode = PolicyMode::kDefault;
  NodeMask policy_nodes;
  int bind_error = 0;
  int query_error = 0;
  std::map<void*, int> strays;  // by page: a node, or a negative errno
  std::vector<PageRange> bound;
  std::vector<PageRange> populated;
  int64_t num_queried = 0;
};

}  // namespace pipeyard::numa
