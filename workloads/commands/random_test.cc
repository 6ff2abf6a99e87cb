// Files and outputs that are broken at random: told or passed over, never a crash and never a value
// that is no number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/testing/golden.h"
#include "workloads/commands/command_file.h"
#include "workloads/commands/command_line.h"
#include "workloads/commands/presets.h"
#include "workloads/commands/read_rules.h"

namespace pipeyard::commands {
namespace {

constexpr int kRounds = 2000;

uint64_t Seed() {
  const char* const given = std::getenv("PIPEYARD_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("PIPEYARD_SEED=%llu repeats this\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Some bytes replaced, taken out or doubled.
std::string Broken(std::string text, std::mt19937_64& random) {
  constexpr std::string_view kBytes = "{}[]()'\",:\n\\*?&!-0 \xff";
  const size_t steps = 1 + random() % 6;
  for (size_t i = 0; i < steps && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    switch (random() % 3) {
      case 0:
        text[at] = kBytes[random() % kBytes.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text.insert(at, text.substr(at, 1 + random() % 40));
    }
  }
  return text;
}

TEST(Random, BrokenFilesAreToldOfOrWhole) {
  std::mt19937_64 random(Seed());
  const std::vector<std::string_view> names = PresetNames();
  for (int round = 0; round < kRounds; ++round) {
    const std::string_view name = names[random() % names.size()];
    const std::string text = Broken(std::string(PresetText(name)), random);

    const FileReading reading = ReadCommandFile(text, name);

    ASSERT_NE(reading.command.has_value(), !reading.problems.empty()) << text;
    if (!reading.command) continue;
    std::map<std::string, std::string> given;
    for (const auto& parameter : reading.command->parameters) {
      if (!parameter.default_text) given[parameter.name] = "1";
    }
    // A choice without default may refuse "1"; a command that was read has no other fault.
    const Result<std::vector<std::string>> arguments =
        ExpandArguments(*reading.command, given, "/o");
    ASSERT_TRUE(arguments.ok() || !given.empty()) << text << arguments.status().message();
  }
}

TEST(Random, BrokenOutputsGiveNumbersOrReasons) {
  std::mt19937_64 random(Seed());
  const std::vector<std::string_view> names = PresetNames();
  for (int round = 0; round < kRounds; ++round) {
    const std::string name(names[random() % names.size()]);
    const std::string output = Broken(
        testing::ReadFile(PIPEYARD_SOURCE_DIR "/workloads/commands/testdata/" + name + ".txt"),
        random);

    for (const Reading& reading : ReadMetrics(FindPreset(name)->read, {output, output, output})) {
      ASSERT_EQ(reading.status.ok(), reading.status.message().empty()) << output;
      ASSERT_TRUE(std::isfinite(reading.value)) << output;
    }
  }
}

}  // namespace
}  // namespace pipeyard::commands
