// Cases that were found or thought of once, each on the kernel and on the engine with every page
// cache: testdata/*.ops.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/generator.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

TEST(SavedPrograms, AgreeWithTheKernel) {
  const std::filesystem::path folder =
      std::filesystem::path(PIPEYARD_SOURCE_DIR) / "workloads/pipe/differential/testdata";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    Result<Program> program = ParseProgram(text.str());
    ASSERT_TRUE(program.ok()) << entry.path() << ": " << program.status().ToString();
    const Result<RunSettings> settings = ParseSettings(program->settings);
    ASSERT_TRUE(settings.ok()) << entry.path() << ": " << settings.status().ToString();
    for (const char* page_cache : {"one-page", "two-page", "prealloc-v1", "prealloc", "pool"}) {
      Program with_cache = *program;
      with_cache.settings.emplace_back("page_cache", page_cache);
      const Result<std::string> difference =
          RunAs(settings->is_unprivileged ? Role::kUnprivileged : Role::kAsIs,
                [&] { return Replay(with_cache, MakeEngineSubject); });
      ASSERT_TRUE(difference.ok()) << difference.status().ToString();
      EXPECT_EQ(*difference, "") << entry.path() << " with " << page_cache;
    }
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(SavedPrograms, AreReadAsTheyArePrinted) {
  for (uint64_t i = 0; i < 50; ++i) {
    std::mt19937_64 random(ProgramSeed(1, i));
    GeneratorOptions options;
    options.num_actors = i % 2 == 0 ? 1 : 4;
    const Program program{FormatSettings(RunSettings()), GenerateOperations(random, options)};

    const Result<Program> read = ParseProgram(FormatProgram(program));

    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->operations, program.operations);
    EXPECT_EQ(read->settings, program.settings);
  }
}

TEST(SavedPrograms, WhatCannotBeReadIsRefusedWithItsLine) {
  for (const char* text :
       {"fly f0", "write f0", "write f12 1", "write f0 x", "create f0 f2", "packet f0 maybe",
        "a9 read f0 1", "setting page_cache", "close f0 f1", "poll x", "open-reader f0"}) {
    const Result<Program> program = ParseProgram("create f0 f1\n" + std::string(text) + "\n");

    ASSERT_FALSE(program.ok()) << text;
    EXPECT_NE(program.status().message().find("line 2"), std::string::npos)
        << program.status().message();
  }
}

}  // namespace
}  // namespace pipeyard::pipe::differential
