#include "workloads/pipe/engine.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace pipeyard::pipe {
namespace {

// F_SETPIPE_SZ refuses more than 2^31 bytes.
constexpr uint64_t kMaxPipeBytes = uint64_t{1} << 31;

uint32_t SlotsFor(uint64_t bytes, uint64_t page_bytes) {
  if (bytes == 0) return kDefaultSlots;
  return static_cast<uint32_t>(std::bit_ceil((bytes - 1) / page_bytes + 1));
}

// What pipes and lists can hold at most, and a margin of 1 MiB: no write fails for want of memory
// unless a test asks for that.
uint64_t DefaultArenaBytes(const EngineSetup& setup, uint64_t page_bytes) {
  constexpr uint64_t kMargin = 1 << 20;
  constexpr uint64_t kMaxPreallocated = 8;
  uint64_t pages = setup.worker_cpus.size() * (memory::kListHigh + kMaxPreallocated);
  for (const PipeSetup& pipe : setup.pipes) {
    pages += SlotsFor(pipe.bytes, page_bytes) + CachedPages::kCapacity;
  }
  return memory::AlignUp(pages * page_bytes + kMargin, page_bytes);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(const EngineSetup& setup,
                                               const numa::Topology& host) {
  if (setup.worker_cpus.empty()) return InvalidArgument("engine: no worker");
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
  std::vector<std::pair<uint64_t, uint64_t>> pipe_offsets;  // info, slots
  for (const PipeSetup& pipe : setup.pipes) {
    const uint64_t info = layout.Add(sizeof(PipeInfo), memory::kCacheLine);
    const uint64_t slots =
        layout.Add(sizeof(Slot) * SlotsFor(pipe.bytes, options.page_bytes), memory::kCacheLine);
    pipe_offsets.emplace_back(info, slots);
  }
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
  }
  self.environment_ = {region.base(),      self.pages_.get(),       wait_nodes,
                       self.num_workers(), setup.config.page_cache, setup.config.wait_spin};
  for (size_t i = 0; i < setup.pipes.size(); ++i) {
    auto* info = region.At<PipeInfo>(pipe_offsets[i].first);
    const uint32_t slots = SlotsFor(setup.pipes[i].bytes, options.page_bytes);
    const uint32_t position = setup.pipes[i].first_position;
    static_cast<void>(info->mutex.Lock());
    info->head_tail.store(HeadTail{position, position}.Pack(), std::memory_order_relaxed);
    info->max_usage.store(slots, std::memory_order_relaxed);
    info->ring_slots.store(slots, std::memory_order_relaxed);
    info->readers.store(1, std::memory_order_relaxed);
    info->writers.store(1, std::memory_order_relaxed);
    info->files = 2;
    std::fill(std::begin(info->cache.pages), std::end(info->cache.pages), memory::kNoPage);
    info->slots_offset = pipe_offsets[i].second;
    info->mutex.Unlock();
    self.pipes_.push_back(std::unique_ptr<Pipe>(new Pipe(self.environment_, info)));
  }
  return engine;
}

Engine::~Engine() = default;

void Engine::Stop() {
  for (Worker& worker : workers_) {
    memory::Interrupt(*worker.wait_node_, memory::Interruption::kForGood);
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

Status Engine::CheckConservation() {
  PIPEYARD_ASSIGN_OR_RETURN(memory::PageCensus census, pages_->TakeCensus());
  uint64_t in_rings = 0;
  uint64_t cached = 0;
  auto take = [&](uint64_t page) {
    if (page >= census.is_allocated.size() || !census.is_allocated[page]) return false;
    census.is_allocated[page] = false;
    return true;
  };
  for (size_t i = 0; i < pipes_.size(); ++i) {
    PipeInfo& info = *pipes_[i]->info_;
    bool is_sound = true;
    static_cast<void>(info.mutex.Lock());
    const auto* slots = region_->At<Slot>(info.slots_offset);
    const uint32_t mask = info.ring_slots.load(std::memory_order_relaxed) - 1;
    HeadTail ends = pipes_[i]->Ends();
    is_sound = ends.Occupancy() <= mask + 1;
    for (; is_sound && !ends.IsEmpty(); ++ends.tail, ++in_rings) {
      const Slot& slot = slots[ends.tail & mask];
      is_sound =
          slot.length != 0 && slot.offset + slot.length <= pages_->page_bytes() && take(slot.page);
    }
    for (const memory::PageId page : info.cache.pages) {
      if (page == memory::kNoPage) continue;
      is_sound = is_sound && take(page);
      ++cached;
    }
    info.mutex.Unlock();
    if (!is_sound) {
      return Internal("conservation: pipe " + std::to_string(i) +
                      " holds a page that is free or held twice, or a slot that cannot be");
    }
  }
  if (in_rings + cached != census.num_allocated) {
    return Internal("conservation: " + std::to_string(census.num_allocated) + " pages allocated, " +
                    std::to_string(in_rings) + " in rings and " + std::to_string(cached) +
                    " cached");
  }
  return Status::Ok();
}

Result<PlacementProof> Engine::ProvePlacement() {
  PIPEYARD_ASSIGN_OR_RETURN(const memory::PageCensus census, pages_->TakeCensus());
  const std::vector<numa::PageRange>& arenas = pages_->arenas();
  PlacementProof proof;
  proof.is_emulated = topology_.is_emulated();
  const auto host_page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t host_pages_per_page = pages_->page_bytes() / host_page_bytes;
  std::vector<uint64_t> first_page;
  uint64_t next_page = 0;
  for (const numa::PageRange& arena : arenas) {
    first_page.push_back(next_page);
    next_page += arena.size_bytes / pages_->page_bytes();
  }
  auto is_allocated = [&](size_t arena, uint64_t host_page) {
    return census.is_allocated[first_page[arena] + host_page / host_pages_per_page];
  };
  if (!proof.is_emulated) {
    PIPEYARD_ASSIGN_OR_RETURN(
        proof.nodes, numa::VerifyPlacement(*kernel_, arenas, host_page_bytes, is_allocated));
    for (const numa::PlacementCount& count : proof.nodes) proof.misplaced += count.misplaced();
    return proof;
  }
  for (size_t i = 0; i < arenas.size(); ++i) {
    numa::PlacementCount count;
    count.expected = arenas[i].node;
    for (uint64_t page = 0; page < arenas[i].size_bytes / host_page_bytes; ++page) {
      if (is_allocated(i, page)) ++count.pages_on[count.expected];
    }
    proof.nodes.push_back(std::move(count));
  }
  return proof;
}

}  // namespace pipeyard::pipe
