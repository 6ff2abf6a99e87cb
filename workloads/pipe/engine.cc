#include "workloads/pipe/engine.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "workloads/pipe/page_cache.h"

namespace pipeyard::pipe {
namespace {

// What pipes, their metadata and the workers' lists and sheaves can hold at most, and a margin: no
// write fails for want of memory unless a test asks for that.
uint64_t DefaultArenaBytes(const EngineSetup& setup, uint64_t page_bytes) {
  // Slabs that are being filled, and barns of full sheaves, of the few classes that pipes use.
  constexpr uint64_t kMarginPages = 512;
  // Two sheaves of each of those classes, for every worker that makes pipes.
  constexpr uint64_t kSheafPages = 32;
  const uint64_t workers = setup.worker_cpus.size();
  const uint64_t makers = setup.extra_pipes != 0 ? workers : 1;
  const std::set<numa::CpuId> cpus(setup.worker_cpus.begin(), setup.worker_cpus.end());
  // Full lists, twice: what all of them hold is at most half of a node (PageAllocator::ListHigh).
  const uint64_t list_pages =
      2 * workers * memory::PageAllocator::ListHigh(UINT32_MAX, workers, cpus.size());
  uint64_t pages = kMarginPages + workers * kMaxPreallocated + makers * kSheafPages + list_pages;
  uint64_t num_pipes = setup.extra_pipes;
  uint64_t slots = setup.extra_slots;
  uint64_t ring_slots = setup.extra_slots;
  for (const PipeSetup& pipe : setup.pipes) {
    ++num_pipes;
    slots += SlotsForSize(pipe.bytes, page_bytes);
    ring_slots += SlotsForSize(pipe.bytes, page_bytes) + kDefaultSlots;
  }
  // Rings twice: old and new while a pipe is resized; blocks are rounded up to a power of two.
  const uint64_t ring_bytes = 4 * ring_slots * sizeof(Slot);
  pages += slots + num_pipes * (CachedPages::kCapacity + 1) + ring_bytes / page_bytes;
  return pages * page_bytes;
}

// Errors: kInvalidArgument says which setting cannot be.
Status CheckSetup(const EngineSetup& setup) {
  if (setup.worker_cpus.empty()) return InvalidArgument("engine: no worker");
  if (setup.num_users == 0) return InvalidArgument("engine: no user");
  if (setup.config.remote_access < Nanos(0)) {
    return InvalidArgument("engine.topology: remote_access below 0");
  }
  if (setup.config.wait_spin < Nanos(0)) return InvalidArgument("engine.wait_spin: below 0");
  if (setup.config.interleave_bulk == memory::BulkAlgorithm::kPostedPatch) {
    return InvalidArgument("engine.interleave_bulk: posted-patch places pages wrongly");
  }
  for (const PipeSetup& pipe : setup.pipes) {
    if (pipe.bytes > kMaxPipeBytes) {
      return InvalidArgument("engine: a pipe of " + std::to_string(pipe.bytes) +
                             " bytes, at most 2 GiB");
    }
  }
  return Status::Ok();
}

memory::PageAllocatorOptions PageOptionsOf(const EngineSetup& setup) {
  memory::PageAllocatorOptions options;
  options.page_bytes =
      setup.page_bytes != 0 ? setup.page_bytes : static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  options.arena_bytes =
      setup.arena_bytes != 0 ? setup.arena_bytes : DefaultArenaBytes(setup, options.page_bytes);
  options.worker_cpus = setup.worker_cpus;
  options.source = setup.config.page_source;
  options.accounting.is_on = setup.config.has_accounting;
  if (setup.config.memory_limit_bytes != 0) {
    options.accounting.limit_bytes = setup.config.memory_limit_bytes;
  }
  options.fastpath = setup.config.fastpath;
  options.weights = setup.config.host_weights;
  options.offline_nodes = setup.offline_nodes;
  return options;
}

memory::ObjectAllocatorOptions ObjectOptionsOf(const EngineSetup& setup) {
  memory::ObjectAllocatorOptions options;
  options.form = setup.config.slab;
  options.is_strict_policy =
      setup.config.metadata_placement == memory::MetadataPlacement::kStrictPolicy;
  options.defrag_ratio = setup.config.defrag_ratio;
  options.seed = setup.seed;
  return options;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const EngineSetup& setup,
                                               const numa::Topology& host) {
  PIPEYARD_RETURN_IF_ERROR(CheckSetup(setup));
  numa::Topology topology = host;
  if (setup.config.topology) {
    PIPEYARD_ASSIGN_OR_RETURN(topology, numa::MakeEmulated(*setup.config.topology, host));
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(topology)));
  PIPEYARD_RETURN_IF_ERROR(engine->Build(setup));
  for (const PipeSetup& pipe : setup.pipes) {
    const CreatedPipe created = engine->CreatePipe(engine->worker(0), pipe);
    if (!created.ok()) {
      return ResourceExhausted("engine: create pipe " + std::to_string(engine->num_pipes()) + ": " +
                               ErrnoText(created.error));
    }
    engine->pipes_.push_back(created.pipe);
  }
  return engine;
}

Status Engine::Build(const EngineSetup& setup) {
  kernel_ = setup.kernel != nullptr ? setup.kernel : &numa::SystemNumaKernel();
  const memory::PageAllocatorOptions page_options = PageOptionsOf(setup);
  const memory::ObjectAllocatorOptions object_options = ObjectOptionsOf(setup);
  const size_t num_workers = setup.worker_cpus.size();

  memory::RegionLayout layout;
  // First, so that WaitRef reaches them.
  const uint64_t nodes_offset =
      layout.Add(sizeof(memory::WaitNode) * num_workers, memory::kCacheLine);
  const uint64_t entries_offset =
      layout.Add(sizeof(WorkerEntries) * num_workers, memory::kCacheLine);
  const uint64_t counters_offset =
      layout.Add(sizeof(PipeCounters) * num_workers, memory::kCacheLine);
  const uint64_t by_node_offset =
      layout.Add(sizeof(MetadataByNode) * num_workers, memory::kCacheLine);
  const uint64_t lists_offset = layout.Add(sizeof(PipeList) * num_workers, memory::kCacheLine);
  const uint64_t users_offset = layout.Add(sizeof(PipeUser) * setup.num_users, memory::kCacheLine);
  const uint64_t populated_bytes = layout.size_bytes();
  PIPEYARD_ASSIGN_OR_RETURN(const memory::PageAllocator::Plan page_plan,
                            memory::PageAllocator::AddTo(layout, page_options, topology_));
  PIPEYARD_ASSIGN_OR_RETURN(
      const memory::ObjectAllocator::Plan object_plan,
      memory::ObjectAllocator::AddTo(layout, object_options, page_plan, page_options));
  const bool has_toll = topology_.is_emulated();
  const uint64_t toll_bytes =
      has_toll ? LineToll::TableBytes(page_plan.num_pages, page_options.page_bytes) : 0;
  const uint64_t toll_offset = layout.Add(toll_bytes, memory::kCacheLine);

  PIPEYARD_ASSIGN_OR_RETURN(region_, memory::Region::Create(layout));
  PIPEYARD_RETURN_IF_ERROR(region_->Populate(0, populated_bytes));
  if (has_toll) PIPEYARD_RETURN_IF_ERROR(region_->Populate(toll_offset, toll_bytes));
  PIPEYARD_ASSIGN_OR_RETURN(pages_, memory::PageAllocator::Create(*region_, page_plan, page_options,
                                                                  topology_, *kernel_));
  PIPEYARD_ASSIGN_OR_RETURN(
      objects_,
      memory::ObjectAllocator::Create(*region_, object_plan, object_options, *pages_, topology_));
  if (has_toll) {
    toll_ = std::make_unique<LineToll>(*pages_, region_->At<LineToll::Owner>(toll_offset),
                                       setup.config.remote_access);
  }

  auto* wait_nodes = region_->At<memory::WaitNode>(nodes_offset);
  counters_ = region_->At<PipeCounters>(counters_offset);
  metadata_by_node_ = region_->At<MetadataByNode>(by_node_offset);
  workers_.resize(num_workers);
  for (size_t i = 0; i < num_workers; ++i) {
    Worker& worker = workers_[i];
    worker.index_ = static_cast<int>(i);
    worker.cpu_ = setup.worker_cpus[i];
    worker.host_cpu_ = topology_.HostCpuOf(worker.cpu_);
    worker.node_ = topology_.NodeOfCpu(worker.cpu_);
    worker.pages_ = pages_->MakeWorker(worker.index_);
    worker.objects_ = objects_->MakeWorker(worker.index_, worker.pages_);
    worker.wait_node_ = &wait_nodes[i];
    worker.entries_ = &region_->At<WorkerEntries>(entries_offset)[i];
    worker.counters_ = &counters_[i];
    worker.metadata_by_node_ = &metadata_by_node_[i];
    if (setup.config.policy) worker.SetPolicy(*setup.config.policy);
  }

  environment_.region = region_->base();
  environment_.pages = pages_.get();
  environment_.objects = objects_.get();
  environment_.toll = toll_.get();
  environment_.wait_nodes = wait_nodes;
  environment_.lists = region_->At<PipeList>(lists_offset);
  environment_.num_workers = static_cast<int>(num_workers);
  environment_.users = region_->At<PipeUser>(users_offset);
  environment_.limits = setup.limits;
  environment_.metadata_placement = setup.config.metadata_placement;
  environment_.page_cache = setup.config.page_cache;
  environment_.interleave_bulk = setup.config.interleave_bulk;
  environment_.wait_spin = setup.config.wait_spin;
  environment_.wakeup = setup.config.wakeup;
  environment_.poll_wakeup = setup.config.poll_wakeup;
  return Status::Ok();
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
    const memory::CounterDefinition& counter = kCounters[i];
    values.push_back({counter.name, counter.unit, Count(static_cast<Counter>(i)),
                      counter.is_of_setup || counter.reduction == memory::CounterReduction::kMax});
  }
  for (const memory::CounterValue& value : pages_->Counters()) values.push_back(value);
  // Objects are what pipes are made of.
  for (memory::CounterValue value : objects_->Counters()) {
    value.is_since_start = true;
    values.push_back(value);
  }
  values.push_back({"charged_peak", "bytes", pages_->controller().peak_bytes(),
                    /*is_since_start=*/true});
  values.push_back({"fastpath_flips", "count", pages_->gates().num_flips.load(),
                    /*is_since_start=*/false});
  return values;
}

}  // namespace pipeyard::pipe
