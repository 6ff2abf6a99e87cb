// What a file of commands.d becomes, and what is told of a wrong one.
#include "workloads/commands/command_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/commands/command_line.h"
#include "workloads/commands/presets.h"

namespace pipeyard::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kGood = R"(mybench:
  argv: [/opt/mybench, -t, "{threads}", -o, "{output}"]
  parameters: { threads: { type: int, min: 1, max: 1024 } }
  read:
    ops: { regex: '^ops/s: (\S+)', from: stdout, unit: 1/s, better: higher }
    p99: { json: .lat.p99, from: file, unit: ns, better: lower }
  repeat_safe: true
)";

std::string Told(const std::string& text, const std::string& name = "mybench") {
  std::string told;
  for (const yaml::Problem& problem : ReadCommandFile(text, name).problems) {
    told += problem.Format("f") + "\n";
  }
  return told;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CommandFile, OfTheDesignIsRead) {
  const FileReading reading = ReadCommandFile(kGood, "mybench");

  ASSERT_TRUE(reading.command.has_value()) << Told(kGood);
  const Command& command = *reading.command;
  EXPECT_EQ(command.name, "mybench");
  EXPECT_THAT(command.argv, ElementsAre("/opt/mybench", "-t", "{threads}", "-o", "{output}"));
  ASSERT_EQ(command.parameters.size(), 1u);
  EXPECT_EQ(command.parameters[0].max, 1024);
  ASSERT_EQ(command.read.size(), 2u);
  EXPECT_EQ(command.read[1],
            (ReadRule{"p99", ReadRule::Kind::kJson, ".lat.p99", Source::kFile, "ns", "lower"}));
  EXPECT_TRUE(command.repeat_safe);
}

TEST(CommandFile, TellsWhatIsWrongAndWhere) {
  const struct {
    std::string text;
    std::string told;
  } cases[] = {
      {"", "f:1:1: the file holds nothing; a command: docs/COMMANDS.md has an example"},
      {"[a]", "a list stands here"},
      {"other: { argv: [/a] }", "f:1:1: 'other' is not the name of the file; one command a file"},
      {"mybench:", "mybench: nothing stands here"},
      {"mybench: {}", "mybench: the key 'argv' is missing"},
      {"mybench: { argv: [] }", "argv: an empty list"},
      {"mybench: { argv: [bin/x] }", "'bin/x' is no program; an absolute path, or a name"},
      {"mybench: { argv: ['{x}'] }", "'{x}' is no program"},
      {"mybench: { argv: [/a, {x}] }", "argv: a map stands here"},
      {"mybench: { argv: [/a, 'b{'] }", "argv: 'b{' has a '{' without its mate"},
      {"mybench: { argv: [/a, '}'] }", "argv: '}' has a '}' without its mate"},
      {Replaced(kGood, "{threads}", "{thread}"), "f:2:28: argv: {thread} is no parameter"},
      {Replaced(kGood, "\"{threads}\"", "4"), "argv: parameter threads is not used"},
      {Replaced(kGood, "{output}", "x"),
       "argv: a rule reads from a file that the program is not told of; \"{output}\" in"},
      {Replaced(kGood, "type: int", "type: float"), "parameters.threads.type: 'float' is not one"},
      {Replaced(kGood, "type: int, ", ""), "parameters.threads: the key 'type' is missing"},
      {Replaced(kGood, "max: 1024", "max: 0"), "parameters.threads: min is above max"},
      {Replaced(kGood, "max: 1024", "max: 8, default: 9"),
       "parameters.threads.default: 9 is out of range"},
      {Replaced(kGood, "threads: {", "Threads: {"), "parameters: 'Threads' is no name"},
      {Replaced(kGood, "threads: {", "output: {"), "parameters: 'output' is no name"},
      {Replaced(kGood, "unit: 1/s", "unit: ops"),
       "f:5:56: read.ops.unit: 'ops' is unknown; one of"},
      {Replaced(kGood, "unit: 1/s, ", ""), "read.ops.unit: the key is missing"},
      {Replaced(kGood, "(\\S+)", "\\S+"), "has 0 captures; exactly one (...)"},
      {Replaced(kGood, "(\\S+)", "(a{1,255}){1,255}{1,255}"), "repeats more than 1000 times"},
      {Replaced(kGood, "(\\S+)", "(a*)*\\1b"), "has a back-reference"},
      {Replaced(kGood, "json: .lat.p99", "json: lat"), "read.p99.json: 'lat' is no path"},
      {Replaced(kGood, "json: .lat.p99, ", ""), "read.p99: 0 of regex, json and yaml"},
      {Replaced(kGood, "from: file", "from: disk"), "read.p99.from: 'disk' is not one"},
      {Replaced(kGood, "better: lower", "better: smaller"), "read.p99.better: 'smaller'"},
      {Replaced(kGood, "repeat_safe: true", "repeat_safe: yes"), "repeat_safe: 'yes' is not one"},
      {Replaced(kGood, "repeat_safe", "repeatsafe"), "did you mean 'repeat_safe'?"},
      {"mybench: { preset: hackbenc }", "preset: 'hackbenc' is none; one of hackbench, perf-"},
      {"mybench: { preset: hackbench, argv: [/a] }", "unknown key 'argv'"},
      {"mybench: { preset: hackbench, program: a/b }", "'a/b' is no program"},
      {"mybench: &a { argv: [/a] }", "anchors (&name) are not part of the grammar"},
      {"mybench: { argv: [/a]", "broken YAML"},
  };
  for (const auto& c : cases) {
    EXPECT_FALSE(ReadCommandFile(c.text, "mybench").command.has_value()) << c.text;
    EXPECT_THAT(Told(c.text), HasSubstr(c.told)) << c.text;
  }
  EXPECT_THAT(Told(kGood, "My Bench"), HasSubstr("'My Bench' is no name of a command"));
}

TEST(CommandFile, APresetCanBeAnotherCommandWithAnotherProgram) {
  const FileReading reading =
      ReadCommandFile("new: { preset: hackbench, program: /opt/new/hackbench }", "new");

  ASSERT_TRUE(reading.command.has_value());
  EXPECT_EQ(reading.command->name, "new");
  EXPECT_EQ(reading.command->argv[0], "/opt/new/hackbench");
  EXPECT_EQ(reading.command->read, FindPreset("hackbench")->read);
  EXPECT_EQ(reading.command->package, "") << "no package has that program";
}

TEST(Presets, AreReadByTheOneReader) {
  for (const std::string_view name : PresetNames()) {
    EXPECT_EQ(Told(std::string(PresetText(name)), std::string(name)), "");
    ASSERT_NE(FindPreset(name), nullptr) << name;
    EXPECT_EQ(ExpandArguments(*FindPreset(name), {}, "/o").status().message(), "") << name;
  }
  EXPECT_EQ(FindPreset("nope"), nullptr);
}

TEST(ExpandArguments, PutsInWhatWasGivenAndLeavesEmptyChoicesOut) {
  const auto expand = [](const char* name, std::map<std::string, std::string> given) {
    return ExpandArguments(*FindPreset(name), given, "/o").value();
  };

  EXPECT_THAT(expand("perf-bench-sched-pipe", {{"loops", "7"}}),
              ElementsAre("perf", "bench", "sched", "pipe", "-l", "7"));
  EXPECT_THAT(expand("perf-bench-sched-pipe", {{"loops", "7"}, {"workers", "threads"}}),
              ElementsAre("perf", "bench", "sched", "pipe", "-T", "-l", "7"));
  EXPECT_THAT(
      expand("stress-ng-pipe", {{"seconds", "2"}}),
      ElementsAre("stress-ng", "--pipe", "1", "--timeout", "2s", "--metrics", "--yaml", "/o"));
  EXPECT_THAT(expand("hackbench", {{"message_bytes", "4KiB"}}),
              ElementsAre("hackbench", "--pipe", "--process", "--groups", "10", "--fds", "20",
                          "--loops", "100", "--datasize", "4096"));
}

TEST(ExpandArguments, DoubledBracesAreBracesAndNothingIsSplit) {
  Command command;
  command.argv = {"/a", "{{x}} $HOME `id`; rm -rf *", "", "a{b}c"};
  command.parameters = {{.name = "b", .min = 0, .max = 9}};

  EXPECT_THAT(ExpandArguments(command, {{"b", "1"}}, "").value(),
              ElementsAre("/a", "{x} $HOME `id`; rm -rf *", "", "a1c"));
}

}  // namespace
}  // namespace pipeyard::commands
