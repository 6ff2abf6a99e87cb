// Where a pipe's objects would be asked for and why: decided by the engine's own code
// (workloads/memory), printed as a table or as JSON ("pipeyard.explain_metadata/v1",
// docs/JSON.md).
//
// It allocates nothing, and a node that is asked for is a preference: an allocator without free
// memory there falls back. Thread safety: pure functions but for the files that are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/options/options.h"
#include "workloads/memory/metadata_placement.h"
#include "workloads/memory/policy.h"
#include "workloads/numa/topology.h"

namespace pipeyard::cli {

// A pipe has this many slots when it is created; another size is a resize.
inline constexpr uint64_t kCreationSlots = 16;

struct MetadataQuestion {
  uint64_t slots = kCreationSlots;
  uint64_t page_bytes = 4096;
  memory::Policy policy;
  memory::InterleaveState start;
  std::vector<memory::MetadataPlacement> placements;
  numa::Topology topology;
  numa::NodeId cpu_node = 0;
  numa::NodeId local = 0;  // the memory node of that node's CPUs
  memory::WeightTable host_weights;
};

// Who asked the policy for an object.
enum class Asker { kNobody, kPipe, kSlabAllocator, kPageAllocator };

struct ObjectAnswer {
  std::string object;  // "info", "ring at creation", "ring after resize"
  uint64_t bytes = 0;
  memory::ObjectRequest request;
  Asker asker = Asker::kNobody;
  // Tried first. kNoNode: whatever the CPU's lists hold.
  numa::NodeId node = numa::kNoNode;
  numa::NodeMask allowed;  // where it may end up
  std::string why;
};

struct MetadataAnswer {
  memory::MetadataPlacement placement;
  std::vector<ObjectAnswer> objects;
  memory::InterleaveState end;
};

// `files` serve the host's topology and weights where the command names no other topology. Errors
// name the option and what it takes.
Result<MetadataQuestion> ReadMetadataQuestion(const options::Parsed& parsed,
                                              const numa::ReadFile& files);

// One answer for each placement.
std::vector<MetadataAnswer> AnswerMetadata(const MetadataQuestion& question);

std::string MetadataJson(const MetadataQuestion& question,
                         const std::vector<MetadataAnswer>& answers);
std::string MetadataText(const MetadataQuestion& question,
                         const std::vector<MetadataAnswer>& answers);

}  // namespace pipeyard::cli
