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
//   engine_bench transfer MESSAGE_BYTES PIPE_BYTES DURATION_MS SPIN_NS
//       bytes a second from one writer to one reader
//
// Pages and objects are accounted and, on a host with one node, come by the fastpath; bulk requests
// are not: accounted ones get one page. Exit status 2 for wrong arguments, 1 where it cannot run.
#include <algorithm>
#include <array>
#include <atomic>
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
    const auto page_plan = OrDie(memory::PageAllocator::AddTo(layout, options, topology));
    const memory::ObjectAllocatorOptions object_options;
    const auto object_plan =
        OrDie(memory::ObjectAllocator::AddTo(layout, object_options, page_plan, options));
    region = OrDie(memory::Region::Create(layout));
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

double TransferRate(uint64_t message_bytes, uint64_t pipe_bytes, int64_t duration_ms,
                    int64_t spin_ns) {
  const numa::Topology host = OrDie(numa::ReadTopology(numa::HostFiles()));
  pipe::EngineSetup setup;
  setup.config.wait_spin = Nanos(spin_ns);
  setup.worker_cpus = {host.cpus().front(), host.cpus().back()};
  setup.pipes = {{.bytes = pipe_bytes}};
  const auto engine = OrDie(pipe::Engine::Create(setup, host));
  pipe::Pipe& pipe = engine->pipe(0);
  std::atomic<uint64_t> received = 0;  // written by the reader alone
  std::thread reader([&] {
    std::vector<std::byte> message(message_bytes);
    uint64_t bytes = 0;
    for (;;) {
      const pipe::IoResult result = pipe.Read(engine->worker(0), message.data(), message.size());
      if (result.bytes <= 0) return;
      bytes += static_cast<uint64_t>(result.bytes);
      received.store(bytes, std::memory_order_relaxed);
    }
  });
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    const std::vector<std::byte> message(message_bytes);
    while (!is_over.load(std::memory_order_relaxed)) {
      OrDie(pipe.Write(engine->worker(1), message.data(), message.size()).ok(), "a write failed");
    }
    pipe.CloseWriter(engine->worker(1));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms / 4));
  const int64_t begin = MonotonicNanos();
  const uint64_t before = received.load();
  std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms));
  const double bytes = static_cast<double>(received.load() - before);
  const double seconds = static_cast<double>(MonotonicNanos() - begin) / 1e9;
  is_over.store(true);
  writer.join();
  reader.join();
  return bytes / seconds;
}

int Usage() {
  std::fprintf(stderr,
               "usage: engine_bench page|object pair|batch | bulk 64|single | transfer "
               "MESSAGE_BYTES PIPE_BYTES MS SPIN_NS\n");
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
  } else if (words.size() == 5 && words[0] == "transfer") {
    number = TransferRate(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                          std::strtoll(argv[4], nullptr, 10), std::strtoll(argv[5], nullptr, 10));
  } else {
    return Usage();
  }
  std::printf("%.9g\n", number);
  return 0;
}

}  // namespace
}  // namespace pipeyard

int main(int argc, char** argv) { return pipeyard::Main(argc, argv); }
