#include "workloads/load/engine_target.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/cpu_choice.h"
#include "workloads/load/engine_settings.h"
#include "workloads/load/inert_switches.h"
#include "workloads/load/placement.h"
#include "workloads/load/result_fields.h"
#include "workloads/memory/metadata_placement.h"
#include "workloads/memory/slab_classes.h"
#include "workloads/memory/weight_table.h"
#include "workloads/numa/placement.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {
namespace {

// CPUs of the topology that this process may run on; all of them where the kernel does not say.
std::vector<numa::CpuId> AllowedCpus(const numa::Topology& topology) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return topology.cpus();
  std::vector<numa::CpuId> cpus;
  for (const numa::CpuId cpu : topology.cpus()) {
    if (cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cpus.push_back(cpu);
  }
  return cpus.empty() ? topology.cpus() : cpus;
}

Judgement JudgeCreation(const Status& status) {
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      return Failed("no_memory", status.message());
    case StatusCode::kFailedPrecondition:
      return Void("placement_not_obtained", status.message());
    case StatusCode::kOutOfRange:
      return NotApplicable("memory_limit", status.message());
    case StatusCode::kUnimplemented:
      return Failed("not_supported", status.message());
    default:
      return Failed("engine_setup", status.message());
  }
}

// The units of v1::Counter.
std::string UnitOf(std::string_view unit) {
  if (unit == "bytes") return "B";
  return unit == "ns" ? "ns" : "count";
}

int64_t HostPageBytes() { return ::sysconf(_SC_PAGESIZE); }

// Where the engine runs: the host with the CPUs that this process may use, or the emulated one on
// them.
struct Place {
  numa::Topology host;
  numa::Topology topology;
};

Result<Place> PlaceOf(const pipe::EngineConfig& config) {
  PIPEYARD_ASSIGN_OR_RETURN(const numa::Topology machine, numa::ReadTopology(numa::HostFiles()));
  PIPEYARD_ASSIGN_OR_RETURN(
      numa::Topology host,
      numa::Topology::Make(machine.nodes(), AllowedCpus(machine), machine.is_emulated()));
  if (!config.topology) return Place{host, host};
  Result<numa::Topology> emulated = numa::MakeEmulated(*config.topology, host);
  if (!emulated.ok()) return emulated.status().WithContext("engine.topology");
  return Place{std::move(host), std::move(*emulated)};
}

// Which CPUs of the topology the workers have, in turn.
std::vector<numa::CpuId> CpusOfWorkers(const Place& place, const CpuChoice& choice,
                                       int num_workers) {
  std::vector<numa::CpuId> cpus = choice.cpus;
  if (cpus.empty()) {
    cpus = place.topology.is_emulated() ? place.topology.cpus() : place.host.host_cpus();
  }
  std::vector<numa::CpuId> of_workers;
  for (int i = 0; i < num_workers; ++i) {
    of_workers.push_back(cpus[static_cast<size_t>(i) % cpus.size()]);
  }
  return of_workers;
}

// The kernel takes masks with nodes that are not there in silence; a result must not.
Judgement CheckPolicy(const pipe::EngineConfig& config, const numa::Topology& topology) {
  if (!config.policy || config.policy->nodes.IsEmpty()) return {};
  const Status online = topology.CheckMemoryMask(config.policy->nodes);
  if (online.ok()) return {};
  return NotApplicable("no_such_node",
                       "policy " + memory::FormatPolicy(*config.policy) + ": " + online.message());
}

Judgement CheckAging(const std::optional<AgingRequest>& aging, const numa::Topology& topology) {
  if (!aging) return {};
  const Status online = topology.CheckMemoryMask(numa::NodeMask::Of({aging->node}));
  if (online.ok()) return {};
  return NotApplicable("no_such_node",
                       fmt::format("allocator aged:{}: {}", aging->node, online.message()));
}

// One size of each class: an info, and rings.
memory::AgingOptions AgingOptionsOf(const AgingRequest& aging, pipe::PageCache page_cache) {
  memory::AgingOptions options;
  options.node = aging.node;
  options.num_free = aging.num_free;
  options.sizes.clear();
  std::set<uint32_t> classes;
  const auto add = [&](uint32_t bytes) {
    if (classes.insert(memory::SlabClassIndex(bytes)).second) options.sizes.push_back(bytes);
  };
  add(pipe::InfoBytes(page_cache));
  for (const uint64_t slots : aging.ring_slots) {
    add(static_cast<uint32_t>(slots * memory::kSlotBytes));
  }
  return options;
}

// Emulated nodes have what they are given, and no fallback behind them. What is compared is the
// least that will live at once; what lists hold in advance comes on top.
Judgement CheckEmulatedMemory(const EngineRequest& request, const pipe::EngineSetup& setup,
                              const numa::Topology& topology) {
  if (!topology.is_emulated()) return {};
  const int64_t page_bytes = HostPageBytes();
  const auto judge = [](const std::string& what, int64_t needed, const std::string& where,
                        int64_t has) -> Judgement {
    if (needed <= has) return {};
    return NotApplicable("memory_limit",
                         fmt::format("engine.topology: {} {}, and {} {} at least", where,
                                     FormatBytes(has), what, FormatBytes(needed)));
  };
  int64_t all = 0;
  for (const numa::Node& node : topology.nodes()) all += node.memory_bytes;
  if (setup.aging) {
    const int num_cpus = static_cast<int>(topology.cpus().size());
    const auto pages = static_cast<int64_t>(
        memory::AgingPages(*setup.aging, static_cast<uint64_t>(page_bytes), num_cpus));
    Judgement fits = judge(fmt::format("allocator aged:{} takes", setup.aging->node),
                           pages * page_bytes, fmt::format("node {} has", setup.aging->node),
                           topology.Find(setup.aging->node)->memory_bytes);
    if (!fits.ok()) return fits;
  }
  constexpr int64_t kPipeBytes = memory::kPipeInfoBytes + pipe::kDefaultSlots * memory::kSlotBytes;
  return judge("what lives at once takes",
               static_cast<int64_t>(request.extra_pipes) * kPipeBytes +
                   static_cast<int64_t>(request.extra_pages) * page_bytes,
               "the nodes have", all);
}

Status ReadWeightsInto(const numa::Topology& topology, pipe::EngineConfig& config) {
  if (topology.is_emulated()) return Status::Ok();  // no table: all ones
  PIPEYARD_ASSIGN_OR_RETURN(const memory::HostWeights weights,
                            memory::ReadHostWeights(numa::HostFiles(), topology.memory_nodes()));
  config.host_weights = weights.table;
  return Status::Ok();
}

Result<CpuChoice> CpuChoiceOf(const settings::Variant& variant, const numa::Topology& topology) {
  PIPEYARD_ASSIGN_OR_RETURN(const settings::CpuText text,
                            settings::ParseCpuText(variant.Text("placement.cpus")));
  // Of the host this process has the CPUs that were commanded, and which worker is on which of them
  // is commanded for each or not at all.
  const bool is_per_worker = text.kind == settings::CpuTextKind::kSpread ||
                             text.kind == settings::CpuTextKind::kOnePerCore;
  if (!topology.is_emulated() && !is_per_worker) return CpuChoice();
  return ChooseCpus(text, topology, numa::HostFiles());
}

void Add(const numa::PlacementCount& count, std::map<numa::NodeId, int64_t>& pages) {
  for (const auto& [node, number] : count.pages_on) pages[node] += number;
}

Judgement Misplaced(int64_t pages) {
  if (pages == 0) return {};
  return Void("placement_not_obtained",
              fmt::format("{} pages of the engine lie on another node than its map says", pages));
}

}  // namespace

EngineTarget::EngineTarget(std::unique_ptr<pipe::Engine> engine, bool is_resident,
                           bool pins_workers, std::vector<std::string> inert_switches)
    : engine_(std::move(engine)),
      is_resident_(is_resident),
      pins_workers_(pins_workers),
      inert_switches_(std::move(inert_switches)) {}

Judgement EngineTarget::Create(const settings::Variant& variant, const EngineRequest& request,
                               std::vector<MemoryLimit> memory,
                               std::unique_ptr<EngineTarget>& target) {
  Result<pipe::EngineConfig> config = EngineConfigOf(variant);
  if (!config.ok()) return JudgeCreation(config.status());
  const Result<Place> place = PlaceOf(*config);
  if (!place.ok()) return Failed("engine_setup", place.status().message());
  if (Judgement checked = CheckPolicy(*config, place->topology); !checked.ok()) return checked;
  if (Judgement checked = CheckAging(request.aging, place->topology); !checked.ok()) return checked;
  if (const Status read = ReadWeightsInto(place->topology, *config); !read.ok()) {
    return JudgeCreation(read);
  }
  Result<std::vector<std::string>> inert = InertSwitches(variant, place->topology, HostPageBytes());
  if (!inert.ok()) return JudgeCreation(inert.status());

  pipe::EngineSetup setup;
  setup.config = std::move(*config);
  const Result<CpuChoice> choice = CpuChoiceOf(variant, place->topology);
  if (!choice.ok()) return NotApplicable("no_such_cpu", choice.status().message());
  setup.worker_cpus = CpusOfWorkers(*place, *choice, request.num_workers);
  setup.pipes = request.pipes;
  setup.extra_pipes = request.extra_pipes;
  setup.extra_ring_slots = request.extra_ring_slots;
  setup.extra_slots = request.extra_pages;
  if (request.aging) setup.aging = AgingOptionsOf(*request.aging, setup.config.page_cache);
  if (Judgement fits = CheckEmulatedMemory(request, setup, place->topology); !fits.ok()) {
    return fits;
  }
  const Result<uint64_t> region_bytes = pipe::Engine::RegionBytes(setup, place->host);
  if (!region_bytes.ok()) return JudgeCreation(region_bytes.status());
  if (Judgement fits =
          TakeMemory(static_cast<int64_t>(*region_bytes), "the engine's region", memory);
      !fits.ok()) {
    return fits;
  }
  Result<std::unique_ptr<pipe::Engine>> engine = pipe::Engine::Create(setup, place->host);
  if (!engine.ok()) {
    Judgement judged = JudgeCreation(engine.status());
    if (setup.config.memory_limit_bytes != 0) {
      judged.reason_text +=
          fmt::format("; engine.memory_limit is {}",
                      FormatBytes(static_cast<int64_t>(setup.config.memory_limit_bytes)));
    }
    return judged;
  }
  target.reset(new EngineTarget(
      std::move(*engine), setup.config.page_source == memory::PageSource::kResident,
      place->topology.is_emulated() || choice->is_per_worker, std::move(*inert)));
  return target->ProveObjects();
}

// A ring is one block of pages at most: beyond, F_SETPIPE_SZ says ENOMEM, as the kernel's does.
Judgement EngineTarget::CheckPipeSize(int64_t pipe_bytes) {
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const int64_t max_ring_bytes = page_bytes << memory::kMaxOrder;
  const auto max_slots = std::bit_floor(static_cast<uint64_t>(max_ring_bytes) / sizeof(pipe::Slot));
  const int64_t max_bytes = static_cast<int64_t>(max_slots) * page_bytes;
  if (pipe_bytes <= max_bytes) return {};
  return NotApplicable("pipe_size_limit",
                       fmt::format("pipe_bytes {}: the engine's pipes hold at most {}, whose ring "
                                   "is the largest block of pages",
                                   FormatBytes(pipe_bytes), FormatBytes(max_bytes)));
}

pipe::Worker& EngineTarget::Attach(int worker_index) {
  pipe::Worker& worker = engine_->worker(worker_index);
  if (pins_workers_) {
    // Refused only where the CPU is gone from the cpuset, which CheckPlacement() at the end sees;
    // emulated times are modelled anyway.
    static_cast<void>(PinThread(worker.host_cpu()));
  }
  return worker;
}

void EngineTarget::OnlineNode(numa::NodeId node) {
  if (engine_->topology().is_emulated()) return;
  // Where its memory cannot be used the fastpaths are off all the same, and that is what counts
  // here.
  static_cast<void>(engine_->pages().OnlineNode(node));
}

uint64_t EngineTarget::FastpathPages() const {
  const memory::PageAllocator& pages = engine_->pages();
  return pages.Count(memory::PageCounter::kFastpathFault) +
         pages.Count(memory::PageCounter::kFastpathPage) +
         pages.Count(memory::PageCounter::kFastpathBulk) +
         pages.Count(memory::PageCounter::kFastpathBlock);
}

Counts EngineTarget::ReadCounts() const {
  Counts counts;
  for (const memory::CounterValue& counter : engine_->Counters()) {
    counts.push_back({.name = std::string(counter.name),
                      .unit = UnitOf(counter.unit),
                      .value = static_cast<int64_t>(counter.value),
                      .is_since_start = counter.is_since_start});
  }
  return counts;
}

void EngineTarget::Describe(v1::WorkerResult& result) const {
  for (const std::string& name : inert_switches_) result.add_inert_switches(name);
  if (engine_->num_aged_slabs() != 0) {
    FillCounters({{"aged_slabs", "count", static_cast<int64_t>(engine_->num_aged_slabs())}},
                 result);
  }
}

Judgement EngineTarget::ProveObjects() {
  // A kernel that does not tell leaves the proof out; nobody may read that as proved.
  const Result<pipe::PlacementProof> proof = engine_->ProvePlacement();
  if (!proof.ok()) return {};
  for (const numa::PlacementCount& count : proof->nodes) Add(count, object_pages_);
  return Misplaced(proof->misplaced);
}

Judgement EngineTarget::Conclude(v1::WorkerResult& result) {
  if (const Status sound = engine_->CheckConservation(); !sound.ok()) {
    return Failed("internal", sound.message());
  }
  const char* const evidence = engine_->topology().is_emulated() ? "emulated" : "move_pages";
  std::map<numa::NodeId, int64_t> objects;
  for (const pipe::MetadataCount& count : engine_->MetadataPlacement()) {
    objects[count.node] = static_cast<int64_t>(count.infos + count.rings);
  }
  const Judgement proved = ProvePages(result);
  if (!object_pages_.empty()) {
    AddPlacement("engine-metadata", evidence, object_pages_, result);
  }
  AddPlacement("engine-objects", "engine-map", objects, result);
  if (!proved.ok()) return proved;
  return CheckGivenBack();
}

// Pages that stay present when they are free do not fault when they are allocated.
Judgement EngineTarget::CheckGivenBack() const {
  const uint64_t refused = engine_->pages().Count(memory::PageCounter::kGiveBackFailures);
  if (refused == 0) return {};
  return Void("pages_not_given_back",
              fmt::format("engine.page_source: on-demand: the kernel refused {} times to take "
                          "free pages back (madvise)",
                          refused));
}

// Every page of the arenas where they are resident: none of them is a hole that asking would fill.
// Else those that are allocated.
Judgement EngineTarget::ProvePages(v1::WorkerResult& result) {
  std::map<numa::NodeId, int64_t> pages;
  if (engine_->topology().is_emulated()) {
    for (const numa::PageRange& arena : engine_->pages().arenas()) {
      pages[arena.node] += static_cast<int64_t>(arena.size_bytes) / HostPageBytes();
    }
    AddPlacement("engine-pages", "emulated", pages, result);
    return {};
  }
  int64_t misplaced = 0;
  if (is_resident_) {
    const auto proved = numa::VerifyPlacement(
        numa::SystemNumaKernel(), engine_->pages().arenas(), static_cast<uint64_t>(HostPageBytes()),
        [](size_t /*range*/, uint64_t /*page*/) { return true; });
    if (!proved.ok()) return {};
    for (const numa::PlacementCount& count : *proved) {
      Add(count, pages);
      misplaced += count.misplaced();
    }
  } else {
    const Result<pipe::PlacementProof> proved = engine_->ProvePlacement();
    if (!proved.ok()) return {};
    for (const numa::PlacementCount& count : proved->nodes) Add(count, pages);
    misplaced = proved->misplaced;
  }
  AddPlacement("engine-pages", "move_pages", pages, result);
  return Misplaced(misplaced);
}

}  // namespace pipeyard::load
