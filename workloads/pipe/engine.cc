#include "workloads/pipe/engine.h"

#include <unistd.h>

#include <string>
#include <utility>

namespace pipeyard::pipe {
namespace {

// What pipes and lists can hold at most, and a margin of 1 MiB: no write fails for want of memory
// unless a test asks for that.
uint64_t DefaultArenaBytes(const EngineSetup& setup, uint64_t page_bytes) {
  constexpr uint64_t kMargin = 1 << 20;
  constexpr uint64_t kMaxPreallocated = 8;
  uint64_t pages = setup.worker_cpus.size() * (memory::kListHigh + kMaxPreallocated);
  for (const PipeSetup& pipe : setup.pipes) {
    pages += SlotsForSize(pipe.bytes, page_bytes) + kDefaultSlots + CachedPages::kCapacity;
  }
  pages += setup.extra_slots + uint64_t{setup.extra_pipes} * CachedPages::kCapacity;
  return memory::AlignUp(pages * page_bytes + kMargin, page_bytes);
}

// Infos and rings, old and new at once while a pipe is resized.
uint64_t ObjectBytes(const EngineSetup& setup, uint64_t page_bytes) {
  constexpr uint64_t kMargin = 1 << 20;
  uint64_t bytes = kMargin;
  for (const PipeSetup& pipe : setup.pipes) {
    bytes += 4 * sizeof(Slot) * (SlotsForSize(pipe.bytes, page_bytes) + kDefaultSlots) + 512;
  }
  return bytes + setup.extra_pipes * uint64_t{512} + 4 * sizeof(Slot) * setup.extra_slots;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const EngineSetup& setup,
                                               const numa::Topology& host) {
  if (setup.worker_cpus.empty()) return InvalidArgument("engine: no worker");
  if (setup.num_users == 0) return InvalidArgument("engine: no user");
  if (setup.config.defrag_ratio < 0 || setup.config.defrag_ratio > 100) {
    return InvalidArgument("engine.defrag_ratio: must be 0 to 100");
  }
  if (setup.config.remote_access < Nanos(0)) {
    return InvalidArgument("engine.topology: remote_access below 0");
  }
  if (setup.config.wait_spin < Nanos(0)) return InvalidArgument("engine.wait_spin: below 0");
  for (const PipeSetup& pipe : setup.pipes) {
    if (pipe.bytes > kMaxPipeBytes) {
      return InvalidArgument("engine: a pipe of " + std::to_string(pipe.bytes) +
                             " bytes, at most 2 GiB");
    }
  }
  numa::Topology topology = host;
  if (setup.config.topology) {
    PIPEYARD_ASSIGN_OR_RETURN(topology, numa::MakeEmulated(*setup.config.topology, host));
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(topology)));
  Engine& self = *engine;
  self.kernel_ = setup.kernel != nullptr ? setup.kernel : &numa::SystemNumaKernel();

  memory::PageAllocatorOptions options;
  options.page_bytes =
      setup.page_bytes != 0 ? setup.page_bytes : static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  options.arena_bytes =
      setup.arena_bytes != 0 ? setup.arena_bytes : DefaultArenaBytes(setup, options.page_bytes);
  options.worker_cpus = setup.worker_cpus;

  const size_t num_workers = setup.worker_cpus.size();
  memory::RegionLayout layout;
  const uint64_t nodes_offset =
      layout.Add(sizeof(memory::WaitNode) * num_workers, memory::kCacheLine);
  const uint64_t counters_offset =
      layout.Add(sizeof(PipeCounters) * num_workers, memory::kCacheLine);
  const uint64_t entries_offset =
      layout.Add(sizeof(WorkerEntries) * num_workers, memory::kCacheLine);
  const uint64_t lists_offset = layout.Add(sizeof(PipeList) * num_workers, memory::kCacheLine);
  const uint64_t users_offset = layout.Add(sizeof(PipeUser) * setup.num_users, memory::kCacheLine);
  const uint64_t object_bytes = ObjectBytes(setup, options.page_bytes);
  const uint64_t objects_offset = layout.Add(object_bytes, memory::kCacheLine);
  const uint64_t metadata_bytes = layout.size_bytes();
  PIPEYARD_ASSIGN_OR_RETURN(const memory::PageAllocator::Plan plan,
                            memory::PageAllocator::AddTo(layout, options, self.topology_));
  PIPEYARD_ASSIGN_OR_RETURN(self.region_, memory::Region::Create(layout));
  memory::Region& region = *self.region_;
  PIPEYARD_RETURN_IF_ERROR(region.Populate(0, metadata_bytes));
  PIPEYARD_ASSIGN_OR_RETURN(self.pages_, memory::PageAllocator::Create(
                                             region, plan, options, self.topology_, *self.kernel_));

  auto* wait_nodes = region.At<memory::WaitNode>(nodes_offset);
  self.counters_ = region.At<PipeCounters>(counters_offset);
  auto* entries = region.At<WorkerEntries>(entries_offset);
  self.host_weights_ = setup.config.host_weights;
  self.workers_.resize(num_workers);
  for (size_t i = 0; i < num_workers; ++i) {
    Worker& worker = self.workers_[i];
    worker.index_ = static_cast<int>(i);
    worker.cpu_ = setup.worker_cpus[i];
    worker.host_cpu_ = self.topology_.HostCpuOf(worker.cpu_);
    worker.node_ = self.topology_.NodeOfCpu(worker.cpu_);
    worker.pages_ = self.pages_->MakeWorker(worker.index_);
    worker.wait_node_ = &wait_nodes[i];
    worker.counters_ = &self.counters_[i];
    worker.entries_ = &entries[i];
    if (setup.config.policy) worker.task_policy_.SetPolicy(*setup.config.policy);
    const numa::NodeId local = self.topology_.LocalMemoryNode(worker.cpu_);
    self.fallback_orders_.push_back(self.topology_.FallbackOrder(local));
    worker.policy_context_ = {local, self.fallback_orders_.back(), self.topology_.memory_nodes(),
                              &self.host_weights_};
  }
  self.objects_.Attach(region, objects_offset, object_bytes);
  PipeEnvironment& environment = self.environment_;
  environment.region = region.base();
  environment.pages = self.pages_.get();
  environment.objects = &self.objects_;
  environment.wait_nodes = wait_nodes;
  environment.lists = region.At<PipeList>(lists_offset);
  environment.num_workers = self.num_workers();
  environment.users = region.At<PipeUser>(users_offset);
  environment.limits = setup.limits;
  environment.metadata_placement = setup.config.metadata_placement;
  environment.page_cache = setup.config.page_cache;
  environment.interleave_bulk = setup.config.interleave_bulk;
  environment.has_accounting = setup.config.has_accounting;
  environment.wait_spin = setup.config.wait_spin;
  environment.wakeup = setup.config.wakeup;
  environment.poll_wakeup = setup.config.poll_wakeup;
  for (const PipeSetup& pipe : setup.pipes) {
    const CreatedPipe created = self.CreatePipe(self.workers_[0], pipe);
    if (!created.ok()) {
      return ResourceExhausted("engine: create pipe " + std::to_string(self.pipes_.size()) + ": " +
                               ErrnoText(created.error));
    }
    self.pipes_.push_back(created.pipe);
  }
  return engine;
}

Engine::~Engine() = default;

void Engine::Stop() {
  for (Worker& worker : workers_) {
    memory::Interrupt(worker.sleeper(), memory::Interruption::kForGood);
  }
}

uint64_t Engine::Count(Counter counter) const {
  uint64_t value = 0;
  for (int i = 0; i < num_workers(); ++i) {
    value = memory::Reduce(kCounters[static_cast<size_t>(counter)].reduction, value,
                           counters_[i].Get(counter));
  }
  return value;
}

std::vector<memory::CounterValue> Engine::Counters() const {
  std::vector<memory::CounterValue> values;
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    values.push_back({kCounters[i].name, kCounters[i].unit, Count(static_cast<Counter>(i))});
  }
  for (const memory::CounterValue& value : pages_->Counters()) values.push_back(value);
  return values;
}

}  // namespace pipeyard::pipe
