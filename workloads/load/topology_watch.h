// TopologyWatch: whether CPUs or memory came or went while an attempt ran, and that the engine
// learns of another node before its policies would be passed by.
//
// An attempt in which that happened is void/topology_changed, with its numbers kept.
//
// Thread safety: confined to the owner's thread. Ownership: borrows the listener.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/supervisor.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

class TopologyWatch {
 public:
  // What the target is told and asked.
  struct Target {
    // Another node has memory now.
    std::function<void(numa::NodeId)> online_node;
    // Pages that single-node fastpaths have allocated so far.
    std::function<uint64_t()> fastpath_pages;
  };

  // What happened before is not this attempt's.
  TopologyWatch(const Surroundings& surroundings, Target target);
  TopologyWatch(const TopologyWatch&) = delete;
  TopologyWatch& operator=(const TopologyWatch&) = delete;

  // For the owner to wait with. Borrows this.
  Watch AsWatch();
  // Takes notice of what has been announced since.
  void Look();

  // ok, or void/topology_changed with what was announced.
  Judgement Judge() const;
  // fastpath_pages_after_online: pages that fastpaths allocated between the moment at which another
  // node was heard of and the moment at which they were all off. Empty where nothing happened. The
  // kernel announces a node once it is there, so what fastpaths allocated from then until the owner
  // woke up is not told apart from what they had allocated before; the attempt is void either way.
  Counts counts() const;

 private:
  void FindNewNodes();

  const Surroundings surroundings_;
  const Target target_;
  numa::NodeMask known_nodes_;
  std::string announced_;  // "memory32 online, node1 add"; empty: nothing
  uint64_t fastpath_pages_ = 0;
};

}  // namespace pipeyard::load
