// Every text that fuzzing found worth keeping, in the ordinary build.

#include "workloads/memory/fuzz/text_input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace pipeyard::memory::fuzz {
namespace {

TEST(TextInput, TheCorpusIsAnsweredOrRefused) {
  const std::filesystem::path folder =
      std::filesystem::path(PIPEYARD_SOURCE_DIR) / "workloads/memory/fuzz/corpus";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(RunText(text), "") << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace pipeyard::memory::fuzz
