// Helpers of the pipe's tests: an engine on one emulated-or-host node, data that tells where it
// came from.
//
// Thread safety: thread-compatible.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "workloads/memory/testing.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::pipe {

// Of the tables in the tests. Set explicitly, so that they hold on hosts with larger pages too
// where the host's page divides it.
inline constexpr size_t kPage = 4096;

inline numa::Topology OneNodeHost() {
  return *numa::Topology::Make({{0, {0, 1}, int64_t{1} << 30, {10}}}, {0, 1},
                               /*is_emulated=*/false);
}

// An engine with one pipe; on destruction the pages must add up.
class TestEngine {
 public:
  struct Options {
    PageCache page_cache = PageCache::kTwoPage;
    int workers = 2;
    uint64_t pipe_bytes = 0;
    uint32_t first_position = 0;
    uint64_t page_bytes = kPage;
    Nanos wait_spin{0};
    // Whatever else the engine is to be.
    std::function<void(EngineSetup&)> change = [](EngineSetup&) {};
  };

  TestEngine() : TestEngine(Options()) {}
  explicit TestEngine(const Options& options) {
    EngineSetup setup;
    setup.config.page_cache = options.page_cache;
    setup.config.wait_spin = options.wait_spin;
    for (int i = 0; i < options.workers; ++i) setup.worker_cpus.push_back(i % 2);
    setup.pipes = {{options.pipe_bytes, options.first_position}};
    setup.page_bytes = options.page_bytes;
    options.change(setup);
    Result<std::unique_ptr<Engine>> engine = Engine::Create(setup, OneNodeHost());
    if (!engine.ok()) {
      ADD_FAILURE() << engine.status().ToString();
      std::abort();
    }
    engine_ = std::move(engine).value();
  }
  ~TestEngine() {
    const Status status = engine_->CheckConservation();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  Engine& engine() { return *engine_; }
  Pipe& pipe() { return engine_->pipe(0); }
  Worker& worker(int index = 0) { return engine_->worker(index); }
  uint64_t Count(Counter counter) const { return engine_->Count(counter); }

  // Allocated pages that are not of metadata.
  uint64_t DataPages() {
    return engine_->pages().TakeCensus()->num_allocated -
           engine_->objects().TakeCensus()->num_pages;
  }

  // Nonblocking, by worker 0. Bytes moved, or the errno as a negative number.
  int64_t Write(const std::string& data) {
    return ResultOf(pipe().Write(worker(), data.data(), data.size(), IoMode::kNonblocking));
  }
  // Of a packet (O_DIRECT).
  int64_t WritePacket(size_t size) {
    const std::string data(size, 'p');
    return ResultOf(pipe().Write(worker(), data.data(), data.size(), kIoNonblocking | kIoPacket));
  }
  int64_t Write(size_t size) { return Write(std::string(size, 'x')); }
  int64_t Read(size_t size) {
    std::string data(size, '\0');
    return ResultOf(pipe().Read(worker(), data.data(), size, IoMode::kNonblocking));
  }
  std::string ReadText(size_t size) {
    std::string data(size, '\0');
    const IoResult result = pipe().Read(worker(), data.data(), size, IoMode::kNonblocking);
    data.resize(static_cast<size_t>(result.bytes));
    return data;
  }

  // As a call of that worker on the pipe that sleeps, without a thread for it.
  memory::WaitNode& QueueWaiter(int index, PipeEnd end,
                                memory::WaitKind kind = memory::WaitKind::kExclusive) {
    PipeInfo& info = pipe().info();
    memory::WaitNode& node = worker(index).wait_node();
    node.sleeper.Prepare();
    static_cast<void>(info.mutex.Lock());
    (end == PipeEnd::kRead ? info.readers_waiting : info.writers_waiting)
        .Join(engine_->region().base(), node.sleeper, node.entry, kind);
    info.mutex.Unlock();
    return node;
  }
  // No effect where it has been woken. Precondition: the pipe is open.
  void UnqueueWaiter(int index, PipeEnd end) {
    PipeInfo& info = pipe().info();
    static_cast<void>(info.mutex.Lock());
    (end == PipeEnd::kRead ? info.readers_waiting : info.writers_waiting)
        .Leave(engine_->region().base(), worker(index).wait_node().entry);
    info.mutex.Unlock();
  }

  static int64_t ResultOf(const IoResult& result) {
    return result.ok() ? result.bytes : -result.error;
  }

 private:
  std::unique_ptr<Engine> engine_;
};

// Bytes [position, position + size) of the one stream that the tests send. It repeats after 1 MiB,
// so a byte that got lost or moved by any number of pages of a pipe shows.
inline std::string StreamBytes(uint64_t position, size_t size) {
  static const std::string period = [] {
    std::string bytes(1 << 20, '\0');
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>((i * 2654435761u) >> 24 ^ i);
    return bytes;
  }();
  std::string data;
  data.reserve(size);
  while (data.size() < size) {
    data.append(period, (position + data.size()) % period.size(), size - data.size());
  }
  return data;
}

// Each of the first `writers` workers sends `messages` of `size` bytes, the next `readers` workers
// read until the end. Returns the sum of the bytes received.
inline uint64_t Pump(TestEngine& engine, int writers, int readers, uint64_t messages, size_t size) {
  std::vector<std::thread> threads;
  std::atomic<uint64_t> received{0};
  for (int i = 0; i < readers; ++i) {
    threads.emplace_back([&, i] {
      std::string data(size, '\0');
      for (;;) {
        const IoResult result = engine.pipe().Read(engine.worker(writers + i), data.data(), size);
        if (result.bytes <= 0) break;
        received += static_cast<uint64_t>(result.bytes);
      }
    });
  }
  std::atomic<int> writing{writers};
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      const std::string data(size, static_cast<char>('a' + i));
      for (uint64_t message = 0; message < messages; ++message) {
        if (engine.pipe().Write(engine.worker(i), data.data(), size).bytes !=
            static_cast<int64_t>(size))
          break;
      }
      if (--writing == 0) engine.pipe().CloseWriter(engine.worker(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return received;
}

class EveryCache : public ::testing::TestWithParam<PageCache> {
 protected:
  static TestEngine::Options WithCache() {
    TestEngine::Options options;
    options.page_cache = GetParam();
    return options;
  }
};

inline std::string CacheTestName(const ::testing::TestParamInfo<PageCache>& info) {
  std::string name(PageCacheName(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

#define PIPEYARD_EVERY_CACHE(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(                                                               \
      Generations, suite,                                                                 \
      ::testing::Values(PageCache::kTwoPage, PageCache::kOnePage, PageCache::kPreallocV1, \
                        PageCache::kPrealloc, PageCache::kPool),                          \
      CacheTestName)

}  // namespace pipeyard::pipe
