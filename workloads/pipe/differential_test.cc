// The same operations on the kernel's pipe and on ours: every return value, errno, byte, FIONREAD
// and capacity must agree. One actor, nonblocking. PIPEYARD_SEED repeats a run.

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <random>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class KernelPipe {
 public:
  explicit KernelPipe(uint64_t bytes) {
    is_open_ = ::pipe2(fds_, O_NONBLOCK | O_CLOEXEC) == 0;
    if (is_open_ && bytes != 0)
      is_sized_ = ::fcntl(fds_[1], F_SETPIPE_SZ, static_cast<int>(bytes)) > 0;
  }
  ~KernelPipe() {
    CloseReader();
    CloseWriter();
  }
  // False where this user may not have such a pipe.
  bool is_usable() const { return is_open_ && is_sized_; }
  int64_t Write(const std::string& data) const {
    return ResultOf(::write(fds_[1], data.data(), data.size()));
  }
  int64_t Read(std::string& data) const {
    return ResultOf(::read(fds_[0], data.data(), data.size()));
  }
  int64_t QueuedBytes() const {
    int bytes = 0;
    return ::ioctl(fds_[0] >= 0 ? fds_[0] : fds_[1], FIONREAD, &bytes) == 0 ? bytes : -errno;
  }
  int64_t Capacity() const { return ::fcntl(fds_[1], F_GETPIPE_SZ); }
  void CloseReader() { Close(fds_[0]); }
  void CloseWriter() { Close(fds_[1]); }

 private:
  static int64_t ResultOf(ssize_t result) { return result >= 0 ? result : -errno; }
  static void Close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

  int fds_[2] = {-1, -1};
  bool is_open_ = false;
  bool is_sized_ = true;
};

class Differential : public EveryCache {
 protected:
  Differential() { ::signal(SIGPIPE, SIG_IGN); }

  static TestEngine::Options Like(uint64_t pipe_bytes) {
    TestEngine::Options options = WithCache();
    options.pipe_bytes = pipe_bytes;
    options.page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return options;
  }
};
PIPEYARD_EVERY_CACHE(Differential);

// Sizes at which something changes: around 0, PIPE_BUF, pages, the pipe.
size_t DrawSize(std::mt19937_64& random, size_t capacity) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t around[] = {1, 2, 100, page / 2, page, 2 * page, 8 * page, 9 * page, capacity};
  switch (random() % 4) {
    case 0:
      return random() % 200;
    case 1:
      return random() % (3 * page);
    case 2:
      return around[random() % std::size(around)] + random() % 3 - 1;
    default:
      return random() % (capacity + 2 * page);
  }
}

TEST_P(Differential, RandomOperationsAgree) {
  std::mt19937_64 random(memory::TestSeed(20240817));
  constexpr int kSequences = 80;
  constexpr int kOperations = 250;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  int num_compared = 0;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    const uint64_t pipe_bytes = (uint64_t[]){0, page, 2 * page, 4 * page, 32 * page}[random() % 5];
    KernelPipe kernel(pipe_bytes);
    if (!kernel.is_usable()) continue;
    ++num_compared;
    TestEngine engine(Like(pipe_bytes));
    ASSERT_EQ(static_cast<int64_t>(engine.pipe().capacity_bytes()), kernel.Capacity());
    const size_t capacity = engine.pipe().capacity_bytes();
    const int64_t write_share = 30 + static_cast<int64_t>(random() % 50);
    bool is_reader_open = true;
    bool is_writer_open = true;
    uint64_t written = 0;
    for (int operation = 0; operation < kOperations && (is_reader_open || is_writer_open);
         ++operation) {
      const std::string where =
          "sequence " + std::to_string(sequence) + " operation " + std::to_string(operation);
      if (random() % 200 == 0) {
        if (random() % 2 == 0 && is_reader_open) {
          kernel.CloseReader();
          engine.pipe().CloseReader(engine.worker());
          is_reader_open = false;
        } else if (is_writer_open) {
          kernel.CloseWriter();
          engine.pipe().CloseWriter(engine.worker());
          is_writer_open = false;
        }
        continue;
      }
      const size_t size = DrawSize(random, capacity);
      if (static_cast<int64_t>(random() % 100) < write_share) {
        if (!is_writer_open) continue;
        const std::string data = StreamBytes(written, size);
        const int64_t expected = kernel.Write(data);
        ASSERT_EQ(engine.Write(data), expected) << where << ": write " << size;
        if (expected > 0) written += static_cast<uint64_t>(expected);
      } else {
        if (!is_reader_open) continue;
        std::string data(size, '\0');
        const int64_t expected = kernel.Read(data);
        data.resize(static_cast<size_t>(std::max<int64_t>(expected, 0)));
        std::string ours(size, '\0');
        const IoResult result =
            engine.pipe().Read(engine.worker(), ours.data(), size, IoMode::kNonblocking);
        ASSERT_EQ(TestEngine::ResultOf(result), expected) << where << ": read " << size;
        ours.resize(data.size());
        ASSERT_EQ(ours, data) << where << ": read " << size;
      }
      if (is_reader_open || is_writer_open) {
        ASSERT_EQ(engine.pipe().QueuedBytes(engine.worker()), kernel.QueuedBytes()) << where;
      }
    }
  }
  if (num_compared == 0) GTEST_SKIP() << "this user may not make pipes of the sizes compared";
}

TEST_P(Differential, WritesOfEverySizeFillThePipeAlike) {
  for (size_t size = 1; size < 9000; size += size < 130 ? 43 : 397) {
    KernelPipe kernel(0);
    ASSERT_TRUE(kernel.is_usable());
    TestEngine engine(Like(0));
    const std::string data(size, 'x');
    for (;;) {
      const int64_t expected = kernel.Write(data);
      ASSERT_EQ(engine.Write(data), expected) << size;
      if (expected < 0) break;
    }
    ASSERT_EQ(engine.pipe().QueuedBytes(engine.worker()), kernel.QueuedBytes()) << size;
  }
}

TEST_P(Differential, TheSecondWriteMergesAlike) {
  KernelPipe kernel(0);
  ASSERT_TRUE(kernel.is_usable());
  TestEngine engine(Like(0));
  const std::string page(static_cast<size_t>(::sysconf(_SC_PAGESIZE)), 'p');
  std::string everything(engine.pipe().capacity_bytes(), '\0');
  for (size_t first = 1; first <= 4200; first += 311) {
    for (size_t read = 0; read < first; read += 1 + first / 3) {
      for (size_t second = 1; second <= 8300; second += 457) {
        std::string skipped(read, '\0');
        kernel.Write(StreamBytes(0, first));
        engine.Write(StreamBytes(0, first));
        kernel.Read(skipped);
        engine.Read(read);
        kernel.Write(StreamBytes(first, second));
        engine.Write(StreamBytes(first, second));
        // How many pages still fit tells how many slots are in use.
        int num_kernel = 0;
        int num_ours = 0;
        while (kernel.Write(page) > 0) ++num_kernel;
        while (engine.Write(page) > 0) ++num_ours;
        ASSERT_EQ(num_ours, num_kernel) << first << " " << read << " " << second;
        const int64_t drained = kernel.Read(everything);
        ASSERT_EQ(engine.Read(everything.size()), drained);
      }
    }
  }
}

}  // namespace
}  // namespace pipeyard::pipe
