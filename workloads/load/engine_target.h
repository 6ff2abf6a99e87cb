// EngineTarget: the engine of one attempt: what the variant commands on this host, and what its
// result says of it. Each workload drives the engine itself.
//
// Workers run where they are allowed to, as those of target kernel do; each has one of the allowed
// CPUs as its own in the engine's eyes, in turn, from which its nearest memory follows. On an
// emulated topology the CPUs are virtual, and each worker stays on the host's CPU that its virtual
// one stands on.
//
// Thread safety: Attach() by each worker for itself; the rest by the owner, OnlineNode() and the
// counts also while workers run. Ownership: owns the engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/aging_request.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::load {

// What a workload needs beside what the variant's engine.* say.
struct EngineRequest {
  int num_workers = 1;
  std::vector<pipe::PipeSetup> pipes = {};
  // What workers allocate later, all of them at once: pipes with that many slots in all, and pages.
  uint32_t extra_pipes = 0;
  uint64_t extra_ring_slots = 0;
  uint64_t extra_pages = 0;
  // What the variant's `allocator` asks for.
  std::optional<AgingRequest> aging = {};
};

class EngineTarget {
 public:
  // not_applicable/no_such_node where the policy or the allocator names nodes that are not there,
  // not_applicable/memory_limit where the region does not fit into `memory`.
  static Judgement Create(const settings::Variant& variant, const EngineRequest& request,
                          std::vector<MemoryLimit> memory, std::unique_ptr<EngineTarget>& target);

  // not_applicable/pipe_size_limit where a ring of such a pipe would be too large for the engine.
  static Judgement CheckPipeSize(int64_t pipe_bytes);

  EngineTarget(const EngineTarget&) = delete;
  EngineTarget& operator=(const EngineTarget&) = delete;

  pipe::Engine& engine() { return *engine_; }

  // By the worker, in its thread or process.
  pipe::Worker& Attach(int worker_index);

  // Another node with memory is there: no allocation passes its policy by from now on.
  // An emulated topology does not care.
  void OnlineNode(numa::NodeId node);
  // Pages that fastpaths have allocated so far.
  uint64_t FastpathPages() const;
  // The engine's counters over all workers.
  Counts ReadCounts() const;

  // Before the load: adds what the result says of the engine whatever comes, the switches that
  // cannot act.
  void Describe(v1::WorkerResult& result) const;
  // After the workers have ended: adds the proof of where the engine's pages and objects lay.
  // void/placement_not_obtained where pages lie on other nodes than the engine's map says;
  // failed/internal where pages or objects do not add up.
  Judgement Conclude(v1::WorkerResult& result);

 private:
  EngineTarget(std::unique_ptr<pipe::Engine> engine, bool is_resident, bool pins_workers,
               std::vector<std::string> inert_switches);

  // While the pipes live: pages of their objects.
  Judgement ProveObjects();
  Judgement ProvePages(v1::WorkerResult& result);
  Judgement CheckGivenBack() const;

  const std::unique_ptr<pipe::Engine> engine_;
  const bool is_resident_;
  // Each worker stays on its CPU of the host.
  const bool pins_workers_;
  const std::vector<std::string> inert_switches_;
  // Pages of the pipes' objects, per node, by move_pages; empty where the kernel did not tell.
  std::map<numa::NodeId, int64_t> object_pages_;
};

}  // namespace pipeyard::load
