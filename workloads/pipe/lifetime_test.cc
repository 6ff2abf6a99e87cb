// Pipes made and freed at any time, by threads and by processes.

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

TestEngine::Options WithRoom(int workers, PageCache page_cache = PageCache::kTwoPage) {
  TestEngine::Options options;
  options.workers = workers;
  options.page_cache = page_cache;
  options.change = [](EngineSetup& setup) {
    setup.extra_pipes = 600;
    setup.extra_slots = 600 * kDefaultSlots;
  };
  return options;
}

void Close(Pipe pipe, Worker& worker) {
  EXPECT_EQ(pipe.CloseReader(worker), 0);
  EXPECT_EQ(pipe.CloseWriter(worker), 0);
}

TEST(Lifetime, TheLastCloseFreesInfoRingAndPages) {
  TestEngine engine(WithRoom(1));
  Worker& worker = engine.worker();
  const uint64_t before = engine.engine().objects().TakeCensus()->num_live;
  Pipe pipe = engine.engine().CreatePipe(worker).pipe;
  const std::string data(5 * kPage, 'x');
  pipe.Write(worker, data.data(), data.size(), kIoNonblocking);
  EXPECT_EQ(engine.engine().objects().TakeCensus()->num_live, before + 2);
  pipe.Resize(worker, 256 * kPage);
  const memory::ObjectCensus large = *engine.engine().objects().TakeCensus();
  EXPECT_EQ(large.num_live, before + 1);
  EXPECT_EQ(large.num_blocks, 1u) << "a ring of 10,240 bytes is a block of pages";
  Close(pipe, worker);

  const memory::ObjectCensus after = *engine.engine().objects().TakeCensus();
  EXPECT_EQ(after.num_live, before);
  EXPECT_EQ(after.num_blocks, 0u);
  EXPECT_EQ(engine.DataPages(), 0u);
}

TEST(Lifetime, EachOpenHoldsThePipe) {
  TestEngine engine(WithRoom(1));
  Pipe pipe = engine.engine().CreatePipe(engine.worker()).pipe;
  pipe.OpenWriter(engine.worker());
  pipe.CloseReader(engine.worker());
  pipe.CloseWriter(engine.worker());
  EXPECT_EQ(engine.Count(Counter::kPipesFreed), 0u);
  pipe.CloseWriter(engine.worker());

  EXPECT_EQ(engine.Count(Counter::kPipesFreed), 1u);
}

// The kernel's 168 bytes are of the class of 192; with a pool of eight pages it is that of 256.
TEST(Lifetime, InfosAreOfTheKernelsSizeClass) {
  struct Case {
    PageCache page_cache;
    uint64_t class_bytes;
  };
  for (const Case& c : {Case{PageCache::kTwoPage, 192}, Case{PageCache::kOnePage, 192},
                        Case{PageCache::kPrealloc, 192}, Case{PageCache::kPool, 256}}) {
    EXPECT_EQ(memory::ObjectAllocator::ClassBytes(InfoBytes(c.page_cache), 4096), c.class_bytes);
    TestEngine engine(WithRoom(1, c.page_cache));
    const memory::ObjectCensus census = *engine.engine().objects().TakeCensus();
    const uint32_t index = memory::SlabClassIndex(static_cast<uint32_t>(c.class_bytes));
    EXPECT_EQ(census.live_by_class[index][0], 1u) << PageCacheName(c.page_cache);
  }
}

TEST(Lifetime, RingsAreOfTheKernelsSizeClasses) {
  struct Case {
    uint32_t slots;
    uint64_t bytes;
  };
  const Case cases[] = {{1, 64},    {2, 96},    {4, 192},    {8, 512},    {16, 1024},
                        {32, 2048}, {64, 4096}, {128, 8192}, {256, 16384}};
  for (const Case& c : cases) {
    EXPECT_EQ(memory::ObjectAllocator::ClassBytes(c.slots * uint32_t{sizeof(Slot)}, 4096), c.bytes);
  }
}

TEST(Lifetime, ReusedMemoryIsANewPipe) {
  TestEngine engine(WithRoom(1));
  Worker& worker = engine.worker();
  Pipe first = engine.engine().CreatePipe(worker).pipe;
  const std::string data(3 * kPage, 'x');
  first.Write(worker, data.data(), data.size(), kIoNonblocking);
  const uint64_t offset = first.offset();
  Close(first, worker);
  Pipe second = engine.engine().CreatePipe(worker).pipe;
  ASSERT_EQ(second.offset(), offset) << "the sheaf gives back what came last";

  EXPECT_EQ(second.QueuedBytes(worker), 0);
  EXPECT_EQ(second.ring_slots(), kDefaultSlots);
  char byte = 0;
  EXPECT_EQ(second.Read(worker, &byte, 1, kIoNonblocking).error, EAGAIN);
  Close(second, worker);
}

TEST(Lifetime, ManyPipesLiveAtOnceAndCloseInAnyOrder) {
  TestEngine engine(WithRoom(2));
  std::vector<Pipe> pipes;
  for (int i = 0; i < 500; ++i) {
    const CreatedPipe created = engine.engine().CreatePipe(engine.worker(i % 2));
    ASSERT_TRUE(created.ok());
    pipes.push_back(created.pipe);
    pipes.back().Write(engine.worker(0), "ab", 2);
  }
  ASSERT_TRUE(engine.engine().CheckConservation().ok());
  for (size_t step = 0; step < pipes.size(); ++step) {
    Close(pipes[step * 7 % pipes.size()], engine.worker(static_cast<int>(step % 2)));
    if (step % 100 == 0) {
      ASSERT_TRUE(engine.engine().CheckConservation().ok());
    }
  }
  EXPECT_EQ(engine.Count(Counter::kPipesFreed), 500u);
}

TEST(Lifetime, ThreadsCreateUseAndFreeAtTheSameTime) {
  TestEngine engine(WithRoom(4));
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Worker& worker = engine.worker(i);
      for (int round = 0; round < 500; ++round) {
        CreatedPipe created = engine.engine().CreatePipe(worker, {.bytes = 4096u << round % 5});
        char data[3] = {};
        if (!created.ok() || created.pipe.Write(worker, "abc", 3).bytes != 3 ||
            created.pipe.Read(worker, data, 3).bytes != 3 || data[2] != 'c' ||
            created.pipe.CloseReader(worker) != 0 || created.pipe.CloseWriter(worker) != 0) {
          ++num_wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(num_wrong.load(), 0);
  EXPECT_EQ(engine.Count(Counter::kPipesFreed), 2000u);
}

TEST(Lifetime, APipeMadeInOneProcessServesAnother) {
  TestEngine engine(WithRoom(2));
  const pid_t child = ::fork();
  if (child == 0) {
    CreatedPipe created = engine.engine().CreatePipe(engine.worker(1));
    const uint64_t offset = created.pipe.offset();
    const bool is_ok = created.ok() &&
                       engine.pipe().Write(engine.worker(1), &offset, sizeof(offset)).ok() &&
                       created.pipe.Write(engine.worker(1), "from the child", 14).bytes == 14 &&
                       created.pipe.CloseWriter(engine.worker(1)) == 0;
    ::_exit(is_ok ? 0 : 1);
  }
  uint64_t offset = 0;
  engine.pipe().Read(engine.worker(0), &offset, sizeof(offset));
  Pipe pipe = engine.engine().Attach(offset);
  std::string text(20, '\0');
  text.resize(static_cast<size_t>(pipe.Read(engine.worker(0), text.data(), text.size()).bytes));
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(text, "from the child");
  EXPECT_EQ(pipe.Read(engine.worker(0), text.data(), 1).bytes, 0);
  EXPECT_EQ(pipe.CloseReader(engine.worker(0)), 0);
}

}  // namespace
}  // namespace pipeyard::pipe
