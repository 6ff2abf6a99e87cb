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
  uint64_t ring_slots = setup.extra_slots + setup.extra_ring_slots;
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

memory::PageAllocatorOptions PageOptionsOf(const EngineSetup& setup,
                                           const numa::Topology& topology) {
  memory::PageAllocatorOptions options;
  options.page_bytes =
      setup.page_bytes != 0 ? setup.page_bytes : static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  options.arena_bytes =
      setup.arena_bytes != 0 ? setup.arena_bytes : DefaultArenaBytes(setup, options.page_bytes);
  if (setup.aging) {
    const int num_cpus = static_cast<int>(topology.cpus().size());
    options.arena_bytes +=
        memory::AgingPages(*setup.aging, options.page_bytes, num_cpus) * options.page_bytes;
  }
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

// The host, or the emulated topology on it.
Result<numa::Topology> TopologyOf(const EngineSetup& setup, const numa::Topology& host) {
  if (!setup.config.topology) return host;
  return numa::MakeEmulated(*setup.config.topology, host);
}

// Where each part of the region goes.
struct RegionPlan {
  memory::RegionLayout layout;
  uint64_t wait_nodes_offset = 0;
  uint64_t entries_offset = 0;
  uint64_t counters_offset = 0;
  uint64_t by_node_offset = 0;
  uint64_t lists_offset = 0;
  uint64_t users_offset = 0;
  memory::PageAllocatorOptions page_options;
  memory::PageAllocator::Plan pages;
  memory::ObjectAllocatorOptions object_options;
  memory::ObjectAllocator::Plan objects;
  uint64_t toll_offset = 0;
  uint64_t toll_bytes = 0;  // 0: no toll
};

Result<RegionPlan> PlanRegion(const EngineSetup& setup, const numa::Topology& topology) {
  RegionPlan plan;
  plan.page_options = PageOptionsOf(setup, topology);
  plan.object_options = ObjectOptionsOf(setup);
  const size_t num_workers = setup.worker_cpus.size();
  const auto add = [&](size_t bytes, size_t number) {
    return plan.layout.Add(bytes * number, memory::kCacheLine);
  };
  // First, so that WaitRef reaches them.
  plan.wait_nodes_offset = add(sizeof(memory::WaitNode), num_workers);
  plan.entries_offset = add(sizeof(WorkerEntries), num_workers);
  plan.counters_offset = add(sizeof(PipeCounters), num_workers);
  plan.by_node_offset = add(sizeof(MetadataByNode), num_workers);
  plan.lists_offset = add(sizeof(PipeList), num_workers);
  plan.users_offset = add(sizeof(PipeUser), setup.num_users);
  PIPEYARD_ASSIGN_OR_RETURN(plan.pages,
                            memory::PageAllocator::AddTo(plan.layout, plan.page_options, topology));
  PIPEYARD_ASSIGN_OR_RETURN(
      plan.objects, memory::ObjectAllocator::AddTo(plan.layout, plan.object_options, plan.pages,
                                                   plan.page_options));
  if (topology.is_emulated()) {
    plan.toll_bytes = LineToll::TableBytes(plan.pages.num_pages, plan.page_options.page_bytes);
    plan.toll_offset = add(plan.toll_bytes, 1);
  }
  memory::PageAllocator::AddArenas(plan.layout, plan.page_options, plan.pages);
  return plan;
}

}  // namespace

Result<uint64_t> Engine::RegionBytes(const EngineSetup& setup, const numa::Topology& host) {
  PIPEYARD_RETURN_IF_ERROR(CheckSetup(setup));
  PIPEYARD_ASSIGN_OR_RETURN(const numa::Topology topology, TopologyOf(setup, host));
  PIPEYARD_ASSIGN_OR_RETURN(const RegionPlan plan, PlanRegion(setup, topology));
  return plan.layout.size_bytes();
}

Result<std::unique_ptr<Engine>> Engine::Create(const EngineSetup& setup,
                                               const numa::Topology& host) {
  PIPEYARD_RETURN_IF_ERROR(CheckSetup(setup));
  PIPEYARD_ASSIGN_OR_RETURN(numa::Topology topology, TopologyOf(setup, host));
  std::unique_ptr<Engine> engine(new Engine(std::move(topology)));
  PIPEYARD_RETURN_IF_ERROR(engine->Build(setup));
  if (setup.aging) PIPEYARD_RETURN_IF_ERROR(engine->Age(*setup.aging));
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
  PIPEYARD_ASSIGN_OR_RETURN(const RegionPlan plan, PlanRegion(setup, topology_));
  const size_t num_workers = setup.worker_cpus.size();

  PIPEYARD_ASSIGN_OR_RETURN(region_, memory::Region::Create(plan.layout));
  // All metadata at once, so that no huge page is cut in two. It is used by everybody; the
  // machine's default places it.
  PIPEYARD_RETURN_IF_ERROR(region_->Populate(0, plan.pages.pages_offset));
  PIPEYARD_ASSIGN_OR_RETURN(
      pages_,
      memory::PageAllocator::Create(*region_, plan.pages, plan.page_options, topology_, *kernel_));
  PIPEYARD_ASSIGN_OR_RETURN(
      objects_, memory::ObjectAllocator::Create(*region_, plan.objects, plan.object_options,
                                                *pages_, topology_));
  if (plan.toll_bytes != 0) {
    toll_ = std::make_unique<LineToll>(*pages_, region_->At<LineToll::Owner>(plan.toll_offset),
                                       setup.config.remote_access);
  }

  auto* wait_nodes = region_->At<memory::WaitNode>(plan.wait_nodes_offset);
  counters_ = region_->At<PipeCounters>(plan.counters_offset);
  metadata_by_node_ = region_->At<MetadataByNode>(plan.by_node_offset);
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
    worker.entries_ = &region_->At<WorkerEntries>(plan.entries_offset)[i];
    worker.counters_ = &counters_[i];
    worker.metadata_by_node_ = &metadata_by_node_[i];
    if (setup.config.policy) worker.SetPolicy(*setup.config.policy);
  }

  environment_.region = region_->base();
  environment_.pages = pages_.get();
  environment_.objects = objects_.get();
  environment_.toll = toll_.get();
  environment_.wait_nodes = wait_nodes;
  environment_.lists = region_->At<PipeList>(plan.lists_offset);
  environment_.num_workers = static_cast<int>(num_workers);
  environment_.users = region_->At<PipeUser>(plan.users_offset);
  environment_.limits = setup.limits;
  environment_.metadata_placement = setup.config.metadata_placement;
  environment_.page_cache = setup.config.page_cache;
  environment_.interleave_bulk = setup.config.interleave_bulk;
  environment_.wait_spin = setup.config.wait_spin;
  environment_.wakeup = setup.config.wakeup;
  environment_.poll_wakeup = setup.config.poll_wakeup;
  return Status::Ok();
}

Status Engine::Age(const memory::AgingOptions& options) {
  PIPEYARD_ASSIGN_OR_RETURN(aged_, memory::AgeNode(*objects_, workers_[0].objects(), options));
  aged_node_ = options.node;
  object_counters_at_start_ = objects_->Counters();
  return Status::Ok();
}

Engine::~Engine() = default;

void Engine::Stop() {
  for (Worker& worker : workers_) {
    memory::Interrupt(worker.sleeper(), memory::Interruption::kForGood);
  }
}

uint64_t Engine::Count(Counter counter) const {
  return memory::ReduceCounter(counters_, num_workers(), counter,
                               kCounters[static_cast<size_t>(counter)].reduction);
}

std::vector<memory::CounterValue> Engine::Counters() const {
  std::vector<memory::CounterValue> values =
      memory::ReduceCounters(kCounters, counters_, num_workers());
  for (const memory::CounterValue& value : pages_->Counters()) values.push_back(value);
  // Objects are what pipes are made of.
  const std::vector<memory::CounterValue> of_objects = objects_->Counters();
  for (size_t i = 0; i < of_objects.size(); ++i) {
    memory::CounterValue value = of_objects[i];
    value.is_since_start = true;
    if (!object_counters_at_start_.empty()) value.value -= object_counters_at_start_[i].value;
    values.push_back(value);
  }
  values.push_back({"charged_peak", "bytes", pages_->controller().peak_bytes(),
                    /*is_since_start=*/true});
  values.push_back({"region_huge_bytes", "bytes", region_->huge_bytes(), /*is_since_start=*/true});
  values.push_back({"fastpath_flips", "count", pages_->gates().num_flips.load(),
                    /*is_since_start=*/false});
  return values;
}

}  // namespace pipeyard::pipe
