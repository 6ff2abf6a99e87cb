// Many workers on one pipe at once, in threads and in processes: no byte and no page gets lost.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class Concurrency : public EveryCache {
 protected:
  static TestEngine::Options WithWorkers(int workers) {
    TestEngine::Options options = WithCache();
    options.workers = workers;
    return options;
  }
};
PIPEYARD_EVERY_CACHE(Concurrency);

TEST_P(Concurrency, AStreamArrivesInOrderInThreads) {
  TestEngine engine(WithWorkers(2));
  constexpr size_t kTotal = 3'000'000;
  std::thread writer([&] {
    // Sizes that walk over merges, page borders and more than the ring.
    for (size_t at = 0, size = 1; at < kTotal; at += size) {
      size = std::min<size_t>((size * 31 + 7) % 70'001, kTotal - at);
      const std::string data = StreamBytes(at, size);
      if (engine.pipe().Write(engine.worker(0), data.data(), size).bytes !=
          static_cast<int64_t>(size))
        return;
    }
    engine.pipe().CloseWriter(engine.worker(0));
  });
  std::string data(50'000, '\0');
  size_t at = 0;
  bool is_right = true;
  for (size_t size = 1;; size = (size * 17 + 3) % 50'000 + 1) {
    const IoResult result =
        engine.pipe().Read(engine.worker(1), data.data(), std::min(size, data.size()));
    if (result.bytes <= 0) break;
    is_right = is_right && data.compare(0, static_cast<size_t>(result.bytes),
                                        StreamBytes(at, static_cast<size_t>(result.bytes))) == 0;
    at += static_cast<size_t>(result.bytes);
  }
  writer.join();

  EXPECT_EQ(at, kTotal);
  EXPECT_TRUE(is_right);
}

TEST_P(Concurrency, ManyWritersAndReadersLoseNoByteAndNoPage) {
  struct Case {
    int writers, readers;
    uint64_t messages;
    size_t size;
  };
  for (const Case& c : {Case{1, 1, 3000, 65536}, Case{5, 10, 300, 65536}, Case{3, 2, 5000, 100},
                        Case{2, 5, 1000, 5000}}) {
    TestEngine::Options options = WithWorkers(c.writers + c.readers);
    TestEngine engine(options);
    const uint64_t total = static_cast<uint64_t>(c.writers) * c.messages * c.size;

    EXPECT_EQ(Pump(engine, c.writers, c.readers, c.messages, c.size), total);
    EXPECT_EQ(engine.Count(Counter::kBytesWritten), total);
    EXPECT_EQ(engine.Count(Counter::kBytesRead), total);
  }
}

TEST_P(Concurrency, SpinningBeforeSleepingLosesNothing) {
  TestEngine::Options options = WithWorkers(4);
  options.wait_spin = Microseconds(20);
  TestEngine engine(options);

  EXPECT_EQ(Pump(engine, 2, 2, 2000, 3000), 2u * 2000 * 3000);
}

// PIPE_BUF: messages of one page never mix, however many write.
TEST_P(Concurrency, PagesFromManyWritersStayWhole) {
  TestEngine engine(WithWorkers(4));
  std::vector<std::thread> writers;
  std::atomic<int> writing{3};
  for (int i = 1; i <= 3; ++i) {
    writers.emplace_back([&, i] {
      const std::string data(kPipeBuf, static_cast<char>('a' + i));
      for (int message = 0; message < 1000; ++message)
        engine.pipe().Write(engine.worker(i), data.data(), data.size());
      if (--writing == 0) engine.pipe().CloseWriter(engine.worker(i));
    });
  }
  std::string data(kPipeBuf, '\0');
  int num_messages = 0;
  bool is_whole = true;
  while (engine.pipe().Read(engine.worker(0), data.data(), data.size()).bytes ==
         static_cast<int64_t>(kPipeBuf)) {
    is_whole = is_whole && data.find_first_not_of(data[0]) == std::string::npos;
    ++num_messages;
  }
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(num_messages, 3000);
  EXPECT_TRUE(is_whole);
}

TEST_P(Concurrency, ProcessesShareOnePipe) {
  TestEngine engine(WithWorkers(2));
  constexpr size_t kTotal = 2'000'000;
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_ok = true;
    for (size_t at = 0; at < kTotal; at += 10'000) {
      const std::string data = StreamBytes(at, 10'000);
      is_ok =
          is_ok && engine.pipe().Write(engine.worker(1), data.data(), data.size()).bytes == 10'000;
    }
    engine.pipe().CloseWriter(engine.worker(1));
    ::_exit(is_ok ? 0 : 1);
  }
  std::string data(30'000, '\0');
  size_t at = 0;
  bool is_right = true;
  for (;;) {
    const IoResult result = engine.pipe().Read(engine.worker(0), data.data(), data.size());
    if (result.bytes <= 0) break;
    is_right = is_right && data.compare(0, static_cast<size_t>(result.bytes),
                                        StreamBytes(at, static_cast<size_t>(result.bytes))) == 0;
    at += static_cast<size_t>(result.bytes);
  }
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(at, kTotal);
  EXPECT_TRUE(is_right);
  EXPECT_EQ(engine.Count(Counter::kBytesWritten), kTotal);
}

}  // namespace
}  // namespace pipeyard::pipe
