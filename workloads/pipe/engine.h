// Engine: the region, its page allocator, the workers and the pipes of one attempt.
//
//   EngineSetup setup;
//   setup.config.page_cache = PageCache::kPrealloc;
//   setup.worker_cpus = {0, 1};                          // one worker per entry
//   setup.pipes = {{.bytes = 1 << 20}};
//   PIPEYARD_ASSIGN_OR_RETURN(auto engine, Engine::Create(setup, host_topology));
//   // in the thread or child of worker i, which has pinned itself to engine->worker(i).host_cpu():
//   engine->pipe(0).Write(engine->worker(i), buffer, size);
//   CreatedPipe created = engine->CreatePipe(engine->worker(i));      // at any time
//   // when all are done:
//   for (const auto& [name, unit, value] : engine->Counters()) ...
//
// Everything is mapped, bound and populated in Create(), before any fork or thread; arenas of
// page_source on-demand are left for their first use.
// Thread safety: accessors and Stop() from any thread; Check*, Prove* and Counters() once the
// workers have ended (Counters() also before, then each value is exact but not of one moment).
// Ownership: owns region, workers, pipes; borrows nothing but the kernel edge.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "workloads/memory/aging.h"
#include "workloads/memory/object_allocator.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/region.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/placement.h"
#include "workloads/numa/topology.h"
#include "workloads/pipe/engine_config.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// The pipes that an engine has from the start: made by worker 0, in order.
using PipeSetup = PipeOptions;

struct EngineSetup {
  EngineConfig config;
  std::vector<numa::CpuId> worker_cpus;  // of the topology; one worker per entry
  std::vector<PipeSetup> pipes;
  uint64_t page_bytes = 0;  // 0: the host's page size
  // Per node with memory. 0: what `pipes`, `extra_slots` and the workers' lists can hold.
  uint64_t arena_bytes = 0;
  // For pipes made later: how many of them live at once, and their slots in all.
  uint32_t extra_pipes = 0;
  uint64_t extra_slots = 0;
  // Slots of later pipes beside those, which hold no data: of their rings alone.
  uint64_t extra_ring_slots = 0;
  // Brings a node into the state of long use before the first pipe is made: partial slabs. Worker 0
  // does it; what keeps the slabs half full lives as long as the engine. The arenas grow by it.
  std::optional<memory::AgingOptions> aging;
  PipeLimits limits;
  uint32_t num_users = 1;  // at least 1
  // Nodes that may come online while the engine runs (memory::PageAllocator::OnlineNode).
  std::vector<memory::OfflineNode> offline_nodes;
  uint64_t seed = 1;                   // of the slab allocator's dice
  numa::NumaKernel* kernel = nullptr;  // nullptr: the machine's
};

// Where the engine's allocated pages are. On an emulated topology only by the engine's own map.
struct PlacementProof {
  bool is_emulated = false;
  // Allocated pages by the engine's map, per node with memory.
  std::vector<numa::PlacementCount> nodes;
  // Pages that the kernel found on another node than the map says.
  int64_t misplaced = 0;
};

// Infos and rings allocated on one node since the engine's creation, and those that still live.
struct MetadataCount {
  numa::NodeId node = 0;
  uint64_t infos = 0;
  uint64_t rings = 0;
  uint64_t live_objects = 0;
};

class Engine {
 public:
  // Errors: kInvalidArgument says which setting cannot be; kResourceExhausted, kFailedPrecondition
  // as Region and PageAllocator.
  static Result<std::unique_ptr<Engine>> Create(const EngineSetup& setup,
                                                const numa::Topology& host);

  // What Create() will map; with resident pages it takes all of that at once. Errors: as Create().
  static Result<uint64_t> RegionBytes(const EngineSetup& setup, const numa::Topology& host);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  int num_workers() const { return static_cast<int>(workers_.size()); }
  Worker& worker(int index) { return workers_[static_cast<size_t>(index)]; }
  int num_pipes() const { return static_cast<int>(pipes_.size()); }
  // Those of EngineSetup::pipes; until their last close.
  Pipe& pipe(int index) { return pipes_[static_cast<size_t>(index)]; }
  // Slots charged to a user.
  uint64_t UserSlots(uint32_t user) const { return environment_.users[user].slots.load(); }
  // The host's, or the emulated one.
  const numa::Topology& topology() const { return topology_; }
  memory::PageAllocator& pages() { return *pages_; }
  memory::ObjectAllocator& objects() { return *objects_; }
  // Partial slabs that aging left; 0 without.
  uint64_t num_aged_slabs() const { return aged_.num_slabs; }
  // What Poll() and handles of other processes need.
  const PipeEnvironment& environment() const { return environment_; }
  const memory::Region& region() const { return *region_; }
  // False where the arenas could not be bound to their nodes (or are emulated).
  bool is_bound() const { return pages_->is_bound(); }

  // pipe(2) by `worker`, in the thread or process that it is; its CPU, policy and user decide.
  // Every process of the engine can use the pipe (Attach()).
  CreatedPipe CreatePipe(Worker& worker, const PipeOptions& options = {}) {
    return pipe::CreatePipe(environment_, worker, options);
  }
  // A pipe that another worker made, by its offset().
  Pipe Attach(uint64_t offset) const { return Pipe(environment_, offset); }

  // Ends every wait of every worker, now and later, with EINTR. For the end of an attempt that went
  // wrong; cannot be undone.
  void Stop();

  // Sums over workers: the pipe's counters, then the page allocator's, then the object
  // allocator's. What aging did is not among the last.
  std::vector<memory::CounterValue> Counters() const;
  // One counter of the pipe; for tests.
  uint64_t Count(Counter counter) const;

  // Every page is in exactly one place: allocated = cached + in rings, the rest free; every object
  // is a live pipe's info or ring, or keeps an aged slab half full. Errors: kInternal says what
  // does not add up.
  Status CheckConservation();
  // Data pages and the pages of metadata. Errors: kFailedPrecondition when the kernel does not
  // answer.
  Result<PlacementProof> ProvePlacement();
  // Nodes that have ever had metadata, ascending.
  std::vector<MetadataCount> MetadataPlacement() const;

 private:
  explicit Engine(numa::Topology topology) : topology_(std::move(topology)) {}
  Status Build(const EngineSetup& setup);
  // Errors: as memory::AgeNode().
  Status Age(const memory::AgingOptions& options);

  // Constant after creation.
  numa::Topology topology_;
  numa::NumaKernel* kernel_ = nullptr;
  std::unique_ptr<memory::Region> region_;
  std::unique_ptr<memory::PageAllocator> pages_;
  std::unique_ptr<memory::ObjectAllocator> objects_;
  std::unique_ptr<LineToll> toll_;
  PipeEnvironment environment_;
  std::vector<Worker> workers_;
  std::vector<Pipe> pipes_;
  PipeCounters* counters_ = nullptr;            // by worker
  MetadataByNode* metadata_by_node_ = nullptr;  // by worker
  numa::NodeId aged_node_ = numa::kNoNode;
  memory::AgedObjects aged_;
  // The object allocator's counters when the first pipe was made.
  std::vector<memory::CounterValue> object_counters_at_start_;
};

}  // namespace pipeyard::pipe
