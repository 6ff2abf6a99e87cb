// Words for nodes by what they are on a host: in `placement.cpus` and in the lists of policies.
//
//   all-nodes    every node with memory
//   dram-nodes   nodes with memory and CPUs
//   cxl-nodes    nodes with memory and without CPUs, as memory expanders are
//   nearest-cxl  of those the one nearest to the lowest node with CPUs
//
// Thread safety: pure.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeyard::settings {

inline constexpr std::array<std::string_view, 4> kNodeRoles{"all-nodes", "dram-nodes", "cxl-nodes",
                                                            "nearest-cxl"};

inline bool IsNodeRole(std::string_view word) {
  return std::find(kNodeRoles.begin(), kNodeRoles.end(), word) != kNodeRoles.end();
}

}  // namespace pipeyard::settings
