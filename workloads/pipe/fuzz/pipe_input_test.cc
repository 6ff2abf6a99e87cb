// Every input that fuzzing found worth keeping, and some at random, in the ordinary build.

#include "workloads/pipe/fuzz/pipe_input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "workloads/memory/testing.h"

namespace pipeyard::pipe::fuzz {
namespace {

TEST(PipeInput, TheCorpusAgreesWithTheModel) {
  const std::filesystem::path folder =
      std::filesystem::path(PIPEYARD_SOURCE_DIR) / "workloads/pipe/fuzz/corpus";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(RunInput({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}), "")
        << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(PipeInput, RandomBytesAgreeWithTheModel) {
  std::mt19937_64 random(memory::TestSeed(51));
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint8_t> bytes(2 + random() % 800);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    ASSERT_EQ(RunInput(bytes), "");
  }
}

TEST(PipeInput, BytesBecomeAProgram) {
  const std::vector<uint8_t> bytes = {0, 0, 0, 1, 5, 0, 2, 0, 100, 0, 10, 1, 2, 0xc0, 99};

  EXPECT_EQ(FormatProgram(DecodeProgram(bytes)),
            "create f0 f1 nonblocking\nwrite f1 5\nread f0 100\nresize f1 16384\n");
}

}  // namespace
}  // namespace pipeyard::pipe::fuzz
