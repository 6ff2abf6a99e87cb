// engine_bench: times one part of the engine and prints one number. tests/bench.sh runs it, and
// builds it thrice: as users run it, without any memory policy (PIPEYARD_NO_POLICY), without
// counters (PIPEYARD_NO_COUNTERS).
//
//   engine_bench page pair|batch
//       ns for an allocation and its free; batch: 64 allocations, then 64 frees
//   engine_bench object pair|batch
//       the same for an object of 192 bytes
//   engine_bench bulk 64|single
//       ns a page for allocating 64 pages under weighted interleave 3:1, by one call or 64
//   engine_bench transfer MESSAGE_BYTES PIPE_BYTES CHUNK_MESSAGES
//       bytes a second of CPU time from one writer to one reader, both pinned to one CPU
//
// Pages and objects are accounted and, on a host with one node, come by the fastpath; bulk requests
// are not: accounted ones get one page. Exit status 2 for wrong arguments, 1 where it cannot run.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "workloads/memory/monotonic.h"
#include "workloads/memory/object_allocator.h"
#include "workloads/pipe/engine.h"

namespace pipeyard {
namespace {

using memory::MonotonicNanos;

constexpr int kBatch = 64;
// A chunk of this many operations is timed as one; the median over chunks is the answer, so that an
// interruption spoils only its own.
constexpr int kChunkOperations = 1 << 14;
constexpr int kChunks = 101;

template <typename T>
T OrDie(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "engine_bench: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

void OrDie(bool is_done, const char* what) {
  if (is_done) return;
  std::fprintf(stderr, "engine_bench: %s\n", what);
  std::exit(1);
}

// The memory part of an engine: one worker, pages and objects.
struct Memory {
  explicit Memory(numa::Topology nodes, bool is_accounted = true) : topology(std::move(nodes)) {
    memory::PageAllocatorOptions options;
    options.arena_bytes = uint64_t{64} << 20;
    options.worker_cpus = {topology.cpus().front()};
    options.accounting.is_on = is_accounted;
    options.fastpath = memory::FastpathSwitches::All();
    memory::RegionLayout layout;
    auto page_plan = OrDie(memory::PageAllocator::AddTo(layout, options, topology));
    const memory::ObjectAllocatorOptions object_options;
    const auto object_plan =
        OrDie(memory::ObjectAllocator::AddTo(layout, object_options, page_plan, options));
    memory::PageAllocator::AddArenas(layout, options, page_plan);
    region = OrDie(memory::Region::Create(layout));
    OrDie(region->Populate(0, page_plan.pages_offset).ok(), "populate");
    pages = OrDie(memory::PageAllocator::Create(*region, page_plan, options, topology,
                                                numa::SystemNumaKernel()));
    objects = OrDie(
        memory::ObjectAllocator::Create(*region, object_plan, object_options, *pages, topology));
    page_worker = pages->MakeWorker(0);
    object_worker = objects->MakeWorker(0, page_worker);
  }

  numa::Topology topology;
  std::unique_ptr<memory::Region> region;
  std::unique_ptr<memory::PageAllocator> pages;
  std::unique_ptr<memory::ObjectAllocator> objects;
  memory::PageWorker page_worker;
  memory::ObjectWorker object_worker;
};

// Median time of `chunk()`, which does kChunkOperations operations, divided by their number.
template <typename Chunk>
double MedianNanos(const Chunk& chunk) {
  std::vector<double> times;
  for (int i = 0; i < kChunks; ++i) {
    const int64_t begin = MonotonicNanos();
    chunk();
    times.push_back(static_cast<double>(MonotonicNanos() - begin) / kChunkOperations);
  }
  std::nth_element(times.begin(), times.begin() + kChunks / 2, times.end());
  return times[kChunks / 2];
}

template <typename Item, typename Allocate, typename Free>
double AllocationNanos(bool is_batch, const Allocate& allocate, const Free& free) {
  std::array<Item, kBatch> items;
  return MedianNanos([&] {
    if (!is_batch) {
      for (int i = 0; i < kChunkOperations; ++i) free(allocate());
      return;
    }
    for (int i = 0; i < kChunkOperations; i += kBatch) {
      for (Item& item : items) item = allocate();
      for (const Item& item : items) free(item);
    }
  });
}

double PageNanos(bool is_batch) {
  Memory memory(OrDie(numa::ReadTopology(numa::HostFiles())));
  return AllocationNanos<memory::PageId>(
      is_batch, [&] { return memory.pages->Allocate(memory.page_worker); },
      [&](memory::PageId page) { memory.pages->Put(memory.page_worker, page); });
}

double ObjectNanos(bool is_batch) {
  Memory memory(OrDie(numa::ReadTopology(numa::HostFiles())));
  constexpr uint32_t kBytes = 192;
  return AllocationNanos<memory::ObjectRef>(
      is_batch, [&] { return memory.objects->Allocate(memory.object_worker, kBytes); },
      [&](memory::ObjectRef object) {
        memory.objects->Free(memory.object_worker, object, kBytes);
      });
}

// Only allocation is timed: 16 requests of 64 pages; then all are freed.
double InterleavedNanos(bool is_bulk) {
  const numa::EmulatedTopology two_nodes{.nodes = {{1, int64_t{1} << 27}, {1, int64_t{1} << 27}},
                                         .distances = {}};
  Memory memory(OrDie(numa::MakeEmulated(two_nodes, OrDie(numa::ReadTopology(numa::HostFiles())))));
  memory.page_worker.policy.SetPolicy(OrDie(memory::ParsePolicy("weighted-interleave:0=3,1=1")));
  const memory::BulkOptions options{.algorithm = memory::BulkAlgorithm::kFoldedCarry,
                                    .is_accounted = false};
  constexpr int kRequests = 16;
  std::array<memory::PageId, kRequests * kBatch> pages;
  std::vector<double> times;
  for (int chunk = 0; chunk < kChunks * 4; ++chunk) {
    const int64_t begin = MonotonicNanos();
    for (int request = 0; request < kRequests; ++request) {
      const std::span<memory::PageId> out(pages.data() + request * kBatch, kBatch);
      if (is_bulk) {
        OrDie(memory.pages->AllocateBulk(memory.page_worker, out, options) == kBatch,
              "a bulk request got too few pages");
      } else {
        for (memory::PageId& page : out) page = memory.pages->Allocate(memory.page_worker);
      }
    }
    times.push_back(static_cast<double>(MonotonicNanos() - begin) / (kRequests * kBatch));
    memory.pages->FreeBulk(memory.page_worker, pages);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// CPU time of all threads.
int64_t CpuNanos() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Writer and reader, pinned to one CPU: what other programs take, sleep, and where the machine has
// its CPUs are not in it. Median over chunks of bytes a second of CPU time; the first are warm-up.
double TransferRate(uint64_t message_bytes, uint64_t pipe_bytes, uint64_t chunk_messages) {
  const numa::Topology host = OrDie(numa::ReadTopology(numa::HostFiles()));
  pipe::EngineSetup setup;
  const numa::CpuId cpu = host.cpus().back();
  setup.worker_cpus = {cpu, cpu};
  setup.pipes = {{.bytes = pipe_bytes}};
  const auto engine = OrDie(pipe::Engine::Create(setup, host));
  pipe::Pipe& pipe = engine->pipe(0);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(engine->worker(0).host_cpu()), &set);
  // The writer inherits it.
  OrDie(::sched_setaffinity(0, sizeof(set), &set) == 0, "the workers cannot be pinned to a CPU");
  std::thread writer([&] {
    const std::vector<std::byte> message(message_bytes);
    while (pipe.Write(engine->worker(1), message.data(), message.size()).ok()) continue;
  });
  std::vector<std::byte> message(message_bytes);
  std::vector<double> times;
  for (int chunk = -kChunks / 4; chunk < kChunks; ++chunk) {
    const int64_t begin = CpuNanos();
    for (uint64_t left = chunk_messages * message_bytes; left != 0;) {
      const pipe::IoResult result = pipe.Read(engine->worker(0), message.data(), message.size());
      OrDie(result.bytes > 0, "a read failed");
      left -= std::min(left, static_cast<uint64_t>(result.bytes));
    }
    if (chunk >= 0) times.push_back(static_cast<double>(CpuNanos() - begin));
  }
  pipe.CloseReader(engine->worker(0));
  writer.join();
  std::nth_element(times.begin(), times.begin() + kChunks / 2, times.end());
  return static_cast<double>(chunk_messages * message_bytes) * 1e9 / times[kChunks / 2];
}

int Usage() {
  std::fprintf(stderr,
               "usage: engine_bench page|object pair|batch | bulk 64|single | transfer "
               "MESSAGE_BYTES PIPE_BYTES CHUNK_MESSAGES\n");
  return 2;
}

int Main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  double number = 0;
  if (words.size() == 2 && (words[1] == "pair" || words[1] == "batch") &&
      (words[0] == "page" || words[0] == "object")) {
    number = words[0] == "page" ? PageNanos(words[1] == "batch") : ObjectNanos(words[1] == "batch");
  } else if (words.size() == 2 && words[0] == "bulk" &&
             (words[1] == "64" || words[1] == "single")) {
    number = InterleavedNanos(words[1] == "64");
  } else if (words.size() == 4 && words[0] == "transfer") {
    number = TransferRate(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                          std::strtoull(argv[4], nullptr, 10));
  } else {
    return Usage();
  }
  std::printf("%.9g\n", number);
  return 0;
}

}  // namespace
}  // namespace pipeyard

int main(int argc, char** argv) { return pipeyard::Main(argc, argv); }
