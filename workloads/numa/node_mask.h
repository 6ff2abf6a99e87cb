// Node and CPU numbers and sets of nodes.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::numa {

using NodeId = int;
using CpuId = int;

// Nodes are 0..63: one machine word, more than any machine the project meets. A machine with a
// higher node number is refused.
inline constexpr int kMaxNodes = 64;
// No node in particular: the allocator chooses.
inline constexpr NodeId kNoNode = -1;

class NodeMask {
 public:
  NodeMask() = default;
  static NodeMask Of(std::initializer_list<NodeId> nodes);
  static NodeMask FromBits(uint64_t bits) {
    NodeMask mask;
    mask.bits_ = bits;
    return mask;
  }

  // Precondition of these three: 0 <= node < kMaxNodes.
  void Add(NodeId node) { bits_ |= uint64_t{1} << node; }
  void Remove(NodeId node) { bits_ &= ~(uint64_t{1} << node); }
  bool Contains(NodeId node) const { return (bits_ >> node & 1) != 0; }

  bool IsEmpty() const { return bits_ == 0; }
  int Count() const { return __builtin_popcountll(bits_); }
  bool IsSubsetOf(NodeMask other) const { return (bits_ & ~other.bits_) == 0; }
  NodeMask Minus(NodeMask other) const { return FromBits(bits_ & ~other.bits_); }
  // Ascending.
  std::vector<NodeId> Nodes() const;
  uint64_t bits() const { return bits_; }
  // "0-1,3"; "" for none.
  std::string ToString() const;

  friend bool operator==(NodeMask, NodeMask) = default;

 private:
  uint64_t bits_ = 0;
};

// Reads the kernel's list format, "0-3,8": ascending result without duplicates; "" and whitespace
// are the empty list. Errors: kInvalidArgument for anything else, including reversed ranges and
// numbers above `max`.
Result<std::vector<int>> ParseNumberList(std::string_view text, int max);
// The shortest text that ParseNumberList() reads back. `numbers` ascend.
std::string FormatNumberList(const std::vector<int>& numbers);
Result<NodeMask> ParseNodeMask(std::string_view text);

}  // namespace pipeyard::numa
