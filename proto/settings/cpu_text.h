// The words of `placement.cpus`: which CPUs an attempt runs on. What they become on a host is for
// workloads/load to say (load::ChooseCpus).
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::settings {

enum class CpuTextKind {
  kInherited,   // ""
  kCpus,        // "0-3,8"
  kNodes,       // "node0", "node0,node2": all CPUs of these nodes
  kNodeRole,    // "dram-nodes", ..: all CPUs of the nodes that have that role on the host
  kSpread,      // worker after worker on another node, each on a CPU of its own
  kOnePerCore,  // one hardware thread of every core, a worker on each in turn
  kShare,       // "50%cpus": the lowest of the host's CPUs, rounded down, at least one
};

struct CpuText {
  CpuTextKind kind = CpuTextKind::kInherited;
  std::vector<int> numbers;  // of CPUs or nodes, ascending, each once
  std::string role;          // one of kNodeRoles
  int percent = 0;           // 1..100
};

// Errors: kInvalidArgument says what was meant.
Result<CpuText> ParseCpuText(std::string_view text);
// For a row of the catalog.
Status CheckCpuText(std::string_view text);

}  // namespace pipeyard::settings
