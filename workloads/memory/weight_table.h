// Weighted interleave's table: as the host's kernel shows it, and how the kernel arrives at it.
//
// Reading changes nothing on the host. WeightControl is a model of the kernel's settings for tables
// that the engine keeps itself. A table written in a sweep is part of its policy (policy.h).
// Source: kernel-mechanisms.md C1, C6.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "workloads/memory/policy.h"
#include "workloads/numa/node_mask.h"
#include "workloads/numa/topology.h"

namespace pipeyard::memory {

// Where the kernel keeps nodeN, and `auto`, which kernels built with 6.18's headers call
// `__auto_type`.
inline constexpr char kWeightDir[] = "/sys/kernel/mm/mempolicy/weighted_interleave/";

struct HostWeights {
  WeightTable table;  // 1 where the host has no weight for a node
  // Nodes that the host has a weight for; empty before Linux 6.9, which has no table.
  numa::NodeMask nodes;
  std::optional<bool> is_auto;  // absent before Linux 6.16
};

// Reads the weights of `nodes` through `read`. Thread-safe where `read` is. Errors:
// kInvalidArgument names the file and what it holds where that is no weight of 1..255 or no answer
// to yes or no; another code where a file is there and cannot be read.
Result<HostWeights> ReadHostWeights(const numa::ReadFile& read, numa::NodeMask nodes);

// MB/s by node id, 0 where nothing was reported.
using Bandwidths = std::array<uint32_t, numa::kMaxNodes>;

// The weights that auto mode gives to `nodes`: 32 * bandwidth / sum, at least 1, divided by their
// greatest common divisor. All 1 where no bandwidth is known.
WeightTable AutoWeights(const Bandwidths& bandwidths, numa::NodeMask nodes);

// The kernel's table with its two modes. In auto mode (the first) every report and every node that
// comes or goes computes all weights anew; in manual mode reports are only remembered, weights stay
// as they are, and a new node gets 1. Thread safety: confined to one thread.
class WeightControl {
 public:
  explicit WeightControl(numa::NodeMask nodes) : nodes_(nodes) {}

  // As nodeN is written: 1..255, and manual from then on. Errors: kInvalidArgument (the kernel's
  // EINVAL) for another text, an empty one included, and for a node that is not there; nothing
  // changes then.
  Status WriteWeight(numa::NodeId node, std::string_view text);
  // As `auto` is written: Y, N, 1, 0, true or false. Errors: kInvalidArgument; kUnavailable (the
  // kernel's ENODEV) for auto mode where no bandwidth was ever reported. Nothing changes then.
  Status WriteAuto(std::string_view text);

  // The slower of the two counts. Precondition: 0 <= node < kMaxNodes.
  void ReportBandwidth(numa::NodeId node, uint32_t read_mb_per_s, uint32_t write_mb_per_s);
  void OnlineNode(numa::NodeId node);
  void OfflineNode(numa::NodeId node);

  bool is_auto() const { return is_auto_; }
  const WeightTable& table() const { return table_; }

 private:
  void Recompute();

  numa::NodeMask nodes_;
  Bandwidths bandwidths_{};
  WeightTable table_;
  bool is_auto_ = true;
};

}  // namespace pipeyard::memory
