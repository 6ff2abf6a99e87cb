#include "workloads/pipe/engine.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "workloads/numa/fake_numa_kernel.h"
#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

EngineSetup SmallSetup() {
  EngineSetup setup;
  setup.worker_cpus = {0, 1};
  setup.pipes = {{}};
  return setup;
}

numa::Topology TwoNodeHost() {
  return *numa::Topology::Make(
      {{0, {0}, int64_t{1} << 30, {10, 21}}, {1, {1}, int64_t{1} << 30, {21, 10}}}, {0, 1}, false);
}

void FillAndDrain(Engine& engine, int writer, int reader) {
  std::string data(65536, 'x');
  engine.pipe(0).Write(engine.worker(writer), data.data(), data.size(), IoMode::kNonblocking);
  engine.pipe(0).Read(engine.worker(reader), data.data(), 30000, IoMode::kNonblocking);
}

TEST(EngineConfig, EveryWordIsReadBackAndOthersAreRefused) {
  for (const char* text : {"two-page", "one-page", "prealloc-v1", "prealloc", "pool"})
    EXPECT_EQ(PageCacheName(*ParsePageCache(text)), text);
  for (const char* text : {"sheaves", "cpu-slab"})
    EXPECT_EQ(memory::SlabFormName(*memory::ParseSlabForm(text)), text);
  for (const char* text : {"resident", "on-demand"})
    EXPECT_EQ(PageSourceName(*ParsePageSource(text)), text);
  for (const char* text : {"was-full", "always"}) EXPECT_EQ(WakeupName(*ParseWakeup(text)), text);
  for (const char* text : {"poll-usage", "none", "edge-consumers"})
    EXPECT_EQ(PollWakeupName(*ParsePollWakeup(text)), text);
  EXPECT_TRUE(*ParseOnOff("engine.fastpath", "on"));
  EXPECT_FALSE(*ParseOnOff("engine.fastpath", "off"));

  EXPECT_EQ(ParsePageCache("three-page").status().message(),
            "engine.page_cache: 'three-page': must be two-page, one-page, prealloc-v1, prealloc or "
            "pool");
  EXPECT_EQ(memory::ParseSlabForm("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParsePageSource("swap").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseWakeup("never").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParsePollWakeup("some").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseOnOff("engine.fastpath", "yes").status().message(),
            "engine.fastpath: 'yes': must be on or off");
}

TEST(Engine, PipeSizesAreRoundedAsTheKernelDoes) {
  struct Case {
    uint64_t bytes;
    uint32_t slots;
  };
  const Case cases[] = {{0, 16},   {1, 1},      {4095, 1},   {4096, 1},
                        {4097, 2}, {65536, 16}, {65537, 32}, {1 << 20, 256}};
  for (const Case& c : cases) {
    EngineSetup setup = SmallSetup();
    setup.page_bytes = 4096;
    setup.pipes = {{c.bytes}};
    const auto engine = *Engine::Create(setup, OneNodeHost());

    EXPECT_EQ(engine->pipe(0).ring_slots(), c.slots) << c.bytes;
    EXPECT_EQ(engine->pipe(0).capacity_bytes(), c.slots * uint64_t{4096}) << c.bytes;
  }
}

TEST(Engine, RefusesWhatCannotBe) {
  struct Case {
    const char* why;
    void (*spoil)(EngineSetup&);
  };
  const Case cases[] = {
      {"no worker", [](EngineSetup& s) { s.worker_cpus.clear(); }},
      {"unknown CPU",
       [](EngineSetup& s) {
         s.worker_cpus = {0, 9};
       }},
      {"negative spin", [](EngineSetup& s) { s.config.wait_spin = Nanos(-1); }},
      {"page of 3000 bytes", [](EngineSetup& s) { s.page_bytes = 3000; }},
      {"pipe above 2 GiB", [](EngineSetup& s) { s.pipes = {{(uint64_t{1} << 31) + 1}}; }},
      {"arena below a page", [](EngineSetup& s) { s.arena_bytes = 100; }},
      {"emulated topology without memory",
       [](EngineSetup& s) {
         s.config.topology = numa::EmulatedTopology{{{2, 0}}, {}};
       }},
  };
  for (const Case& c : cases) {
    EngineSetup setup = SmallSetup();
    c.spoil(setup);
    EXPECT_EQ(Engine::Create(setup, OneNodeHost()).status().code(), StatusCode::kInvalidArgument)
        << c.why;
  }
}

TEST(Engine, MoreMemoryThanThereIsIsAnError) {
  EngineSetup setup = SmallSetup();
  setup.arena_bytes = uint64_t{1} << 43;

  const StatusCode code = Engine::Create(setup, OneNodeHost()).status().code();
  EXPECT_TRUE(code == StatusCode::kResourceExhausted || code == StatusCode::kInvalidArgument);
}

// Else the trial pays for first touch, and memory that is not there kills it with SIGBUS.
TEST(Engine, NothingButFreePagesOnDemandIsLeftToPopulate) {
  const uint64_t page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const bool is_emulated : {false, true}) {
    for (const auto source : {memory::PageSource::kResident, memory::PageSource::kOnDemand}) {
      EngineSetup setup = SmallSetup();
      setup.config.page_source = source;
      if (is_emulated) {
        setup.config.topology = numa::EmulatedTopology{{{2, 64 << 20}, {2, 64 << 20}}, {}};
      }
      const auto engine = *Engine::Create(setup, OneNodeHost());
      const memory::Region& region = engine->region();
      const bool is_resident = source == memory::PageSource::kResident;
      const uint64_t bytes = is_resident ? region.size_bytes() : engine->pages().OffsetOf(0);
      std::vector<unsigned char> presence(bytes / page_bytes);

      ASSERT_EQ(::mincore(region.base(), presence.size() * page_bytes, presence.data()), 0);

      EXPECT_EQ(std::count_if(presence.begin(), presence.end(),
                              [](unsigned char state) { return (state & 1) == 0; }),
                0)
          << "emulated " << is_emulated << ", resident " << is_resident;
    }
  }
}

TEST(Engine, WhenMemoryRunsOutWritesSaySo) {
  EngineSetup setup = SmallSetup();
  setup.page_bytes = 4096;
  setup.arena_bytes = 20 * 4096;  // metadata takes some of them
  const auto engine = *Engine::Create(setup, OneNodeHost());
  const std::string data(65536, 'x');
  Pipe& pipe = engine->pipe(0);
  const int64_t fitted =
      pipe.Write(engine->worker(0), data.data(), data.size(), IoMode::kNonblocking).bytes;

  EXPECT_GT(fitted, 0);
  EXPECT_LT(fitted, 65536);
  EXPECT_EQ(fitted % 4096, 0);
  EXPECT_EQ(pipe.Write(engine->worker(0), data.data(), 4096, IoMode::kNonblocking).error, ENOMEM);
  EXPECT_TRUE(engine->CheckConservation().ok());
}

TEST(Engine, OverTheMemoryLimitWritesSaySo) {
  for (const bool is_on : {true, false}) {
    EngineSetup setup = SmallSetup();
    setup.page_bytes = 4096;
    setup.config.has_accounting = is_on;
    setup.config.memory_limit_bytes = 8 * 4096;
    const auto engine = *Engine::Create(setup, OneNodeHost());
    const std::string data(65536, 'x');
    const int64_t fitted =
        engine->pipe(0)
            .Write(engine->worker(0), data.data(), data.size(), IoMode::kNonblocking)
            .bytes;

    // Info and ring are charged, too.
    EXPECT_EQ(fitted, is_on ? 7 * 4096 : 65536);
    EXPECT_TRUE(engine->CheckConservation().ok());
  }
}

TEST(Engine, CountersHaveDistinctNamesUnitsAndHelp) {
  EngineSetup setup = SmallSetup();
  setup.pipes.clear();
  const auto engine = *Engine::Create(setup, OneNodeHost());
  std::set<std::string_view> names;
  for (const memory::CounterValue& counter : engine->Counters()) {
    EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
    EXPECT_FALSE(counter.unit.empty()) << counter.name;
    // What the region lies in is the machine's.
    if (counter.name == "region_huge_bytes") continue;
    EXPECT_EQ(counter.value, 0u) << counter.name;
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Counter::kCount) +
                              static_cast<size_t>(memory::PageCounter::kCount) +
                              static_cast<size_t>(memory::ObjectCounter::kCount) +
                              3);  // charged_peak, region_huge_bytes, fastpath_flips
  for (const memory::CounterDefinition& definition : kCounters)
    EXPECT_FALSE(definition.help.empty());
}

TEST(Engine, CountersOfPagesAgreeWithThoseOfTheAllocator) {
  EngineSetup setup = SmallSetup();
  setup.config.page_cache = PageCache::kPrealloc;
  const auto engine = *Engine::Create(setup, OneNodeHost());
  // Before any data: the pages of the metadata.
  const uint64_t num_metadata = engine->pages().TakeCensus()->num_allocated;
  for (int i = 0; i < 50; ++i) FillAndDrain(*engine, 0, 1);
  uint64_t allocated = 0;
  uint64_t freed = 0;
  for (const memory::CounterValue& counter : engine->Counters()) {
    if (counter.name == "pages_allocated") allocated = counter.value;
    if (counter.name == "pages_freed") freed = counter.value;
  }

  EXPECT_EQ(allocated - num_metadata,
            engine->Count(Counter::kPagesUnderMutex) + engine->Count(Counter::kPagesOutsideMutex));
  EXPECT_EQ(freed,
            engine->Count(Counter::kFreedUnderMutex) + engine->Count(Counter::kPreallocFreed));
  EXPECT_EQ(engine->Count(Counter::kPagesOutsideMutex),
            engine->Count(Counter::kPagesFromPrealloc) + engine->Count(Counter::kPreallocToCache) +
                engine->Count(Counter::kPreallocFreed));
}

TEST(Engine, EveryKthHoldOfTheMutexIsTimed) {
  const auto engine = *Engine::Create(SmallSetup(), OneNodeHost());
  char byte = 0;
  for (uint32_t i = 0; i < 10 * kHoldSampling; ++i)
    engine->pipe(0).Read(engine->worker(0), &byte, 1, IoMode::kNonblocking);

  EXPECT_EQ(engine->Count(Counter::kMutexAcquisitions), 10 * kHoldSampling);
  EXPECT_EQ(engine->Count(Counter::kMutexHoldSamples), 10u);
  EXPECT_GE(engine->Count(Counter::kMutexHoldSampled), engine->Count(Counter::kMutexHoldMax));
}

TEST(Engine, ConservationNoticesALostPage) {
  const auto engine = *Engine::Create(SmallSetup(), OneNodeHost());
  FillAndDrain(*engine, 0, 1);
  ASSERT_TRUE(engine->CheckConservation().ok());
  engine->pages().Allocate(engine->worker(0).pages());

  EXPECT_EQ(engine->CheckConservation().code(), StatusCode::kInternal);
}

TEST(Engine, ConservationNoticesAPageHeldTwice) {
  const auto engine = *Engine::Create(SmallSetup(), OneNodeHost());
  FillAndDrain(*engine, 0, 1);
  PipeInfo& info = engine->pipe(0).info();
  static_cast<void>(info.mutex.Lock());
  info.cache.pages[0] = info.cache.pages[1];
  info.mutex.Unlock();

  EXPECT_EQ(engine->CheckConservation().code(), StatusCode::kInternal);
}

TEST(Engine, ProofAsksTheKernelAboutAllocatedPagesOnly) {
  numa::FakeNumaKernel kernel;
  EngineSetup setup = SmallSetup();
  setup.kernel = &kernel;
  const auto engine = *Engine::Create(setup, TwoNodeHost());
  FillAndDrain(*engine, /*writer=*/1, /*reader=*/0);
  const uint64_t num_allocated = engine->pages().TakeCensus()->num_allocated;
  const uint64_t num_metadata = engine->objects().TakeCensus()->num_pages;
  const Result<PlacementProof> proof = engine->ProvePlacement();

  ASSERT_TRUE(proof.ok()) << proof.status().ToString();
  EXPECT_FALSE(proof->is_emulated);
  EXPECT_EQ(proof->misplaced, 0);
  // The pipe's creator sits on node 0, the writer on node 1.
  EXPECT_EQ(static_cast<uint64_t>(proof->nodes[0].pages_on.at(0)), num_metadata);
  EXPECT_EQ(static_cast<uint64_t>(proof->nodes[1].pages_on.at(1)), num_allocated - num_metadata);
  EXPECT_EQ(static_cast<uint64_t>(kernel.num_queried), num_allocated);
}

TEST(Engine, ProofFindsAMisplacedPage) {
  numa::FakeNumaKernel kernel;
  EngineSetup setup = SmallSetup();
  setup.kernel = &kernel;
  const auto engine = *Engine::Create(setup, TwoNodeHost());
  FillAndDrain(*engine, 1, 0);
  const memory::PageCensus census = *engine->pages().TakeCensus();
  for (uint32_t page = 0; page < census.total; ++page) {
    if (census.is_allocated[page]) {
      kernel.strays[engine->pages().Address(page)] = 1 - engine->pages().NodeOf(page);
    }
  }
  const Result<PlacementProof> proof = engine->ProvePlacement();

  ASSERT_TRUE(proof.ok());
  EXPECT_EQ(static_cast<uint64_t>(proof->misplaced), census.num_allocated);
}

TEST(Engine, ProofOnThisMachine) {
  const Result<numa::Topology> host = numa::ReadTopology(numa::HostFiles());
  ASSERT_TRUE(host.ok()) << host.status().ToString();
  EngineSetup setup;
  setup.worker_cpus = {host->cpus().front()};
  setup.pipes = {{}};
  const auto engine = Engine::Create(setup, *host);
  ASSERT_TRUE(engine.ok()) << engine.status().ToString();
  FillAndDrain(**engine, 0, 0);
  const Result<PlacementProof> proof = (*engine)->ProvePlacement();
  if (!proof.ok()) GTEST_SKIP() << "this machine forbids move_pages: " << proof.status().message();

  EXPECT_EQ(proof->misplaced, 0);
  int64_t present = 0;
  for (const numa::PlacementCount& node : proof->nodes) {
    for (const auto& [id, pages] : node.pages_on) present += pages;
  }
  EXPECT_GT(present, 0);
}

TEST(Engine, EmulatedNodesPlaceByTheEnginesOwnMap) {
  numa::FakeNumaKernel kernel;
  EngineSetup setup;
  setup.kernel = &kernel;
  setup.config.topology =
      numa::EmulatedTopology{{{2, 64 << 20}, {2, 64 << 20}}, {{10, 21}, {21, 10}}};
  setup.worker_cpus = {3, 0};
  setup.pipes = {{}};
  const auto engine = *Engine::Create(setup, OneNodeHost());
  FillAndDrain(*engine, 0, 1);
  const PlacementProof proof = *engine->ProvePlacement();

  EXPECT_EQ(engine->worker(0).node(), 1);
  EXPECT_EQ(engine->worker(0).host_cpu(), 1);
  EXPECT_TRUE(proof.is_emulated);
  EXPECT_TRUE(proof.nodes[0].pages_on.empty());
  EXPECT_EQ(static_cast<uint64_t>(proof.nodes[1].pages_on.at(1)),
            engine->pages().TakeCensus()->num_allocated);
  EXPECT_TRUE(kernel.bound.empty());
  EXPECT_EQ(kernel.num_queried, 0);
}

}  // namespace
}  // namespace pipeyard::pipe
