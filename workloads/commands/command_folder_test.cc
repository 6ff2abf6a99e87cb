#include "workloads/commands/command_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "workloads/commands/command_request.h"

namespace pipeyard::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-commands.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override { EXPECT_TRUE(PosixEnv().RemoveTree(path_).ok()); }

  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(PosixEnv().WriteFileAtomic(path_ + "/" + name, text).ok());
  }
  CommandFolder Read() { return CommandFolder::Read(PosixEnv(), path_); }

  std::string path_;
};

constexpr char kEcho[] =
    "{ argv: [/bin/echo, '{n}'], parameters: { n: { type: int, default: 1 } }, "
    "read: { n: { regex: '^(.*)$', unit: count } } }";

TEST_F(CommandFolderTest, ABrokenFileTakesAwayItsOwnCommandOnly) {
  Write("good.yaml", std::string("good: ") + kEcho);
  Write("bad.yaml", "bad: { argv: [x/y] }");
  Write("late.yml", std::string("late: ") + kEcho);
  Write("README", "not a command");

  const CommandFolder folder = Read();

  EXPECT_EQ(folder.commands().size(), 1u);
  EXPECT_TRUE(folder.Find("good").ok());
  EXPECT_THAT(folder.problems(),
              ElementsAre(HasSubstr("bad.yaml:1:15: 'x/y' is no program"),
                          HasSubstr("late.yml: is not read; a name that ends with .yaml")));
  EXPECT_EQ(folder.Find("bad").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(folder.Find("bad").status().message(), HasSubstr("bad.yaml:1:15"));
  EXPECT_EQ(folder.Find("late").status().code(), StatusCode::kNotFound);
}

TEST_F(CommandFolderTest, APresetIsNotAllowedBeforeAFileSaysSo) {
  EXPECT_THAT(Read().Find("hackbench").status().message(),
              HasSubstr("hackbench.yaml allows it: `hackbench: { preset: hackbench }`"));

  Write("hackbench.yaml", "hackbench: { preset: hackbench }");

  EXPECT_TRUE(Read().Find("hackbench").ok());
}

TEST_F(CommandFolderTest, AFileThatEverybodyMayWriteIsRefused) {
  Write("open.yaml", std::string("open: ") + kEcho);
  ASSERT_EQ(::chmod((path_ + "/open.yaml").c_str(), 0666), 0);

  EXPECT_THAT(Read().Find("open").status().message(), HasSubstr("chmod o-w"));
}

TEST_F(CommandFolderTest, WhatIsNoFileOrTooLongIsRefusedUnread) {
  ASSERT_EQ(::mkfifo((path_ + "/pipe.yaml").c_str(), 0600), 0);
  ASSERT_TRUE(PosixEnv().CreateDirs(path_ + "/dir.yaml").ok());
  Write("long.yaml", std::string((1 << 20) + 1, '#'));

  const CommandFolder folder = Read();

  EXPECT_THAT(folder.Find("pipe").status().message(), HasSubstr("pipe.yaml: is no file"));
  EXPECT_THAT(folder.Find("dir").status().message(), HasSubstr("dir.yaml: is no file"));
  EXPECT_THAT(folder.Find("long").status().message(), HasSubstr("is 1048577 bytes long"));
}

TEST_F(CommandFolderTest, FactsAreShortAndOfOneLineWhateverTheFolderIsCalled) {
  const std::string folder = path_ + "/a\xff\nb" + std::string(200, 'x');
  ASSERT_TRUE(PosixEnv().CreateDirs(folder).ok());
  ASSERT_TRUE(PosixEnv().WriteFileAtomic(folder + "/bad.yaml", "bad: [").ok());
  ProgramHashes hashes;

  const std::map<std::string, std::string> facts =
      CommandFacts(CommandFolder::Read(PosixEnv(), folder), hashes);

  const std::string& fact = facts.at("command.bad.program");
  EXPECT_THAT(fact, HasSubstr("a\\xff\\nb"));
  EXPECT_LE(fact.size(), 1000u);
}

TEST_F(CommandFolderTest, AFolderThatIsNotThereAllowsNothingAndIsNoProblem) {
  const CommandFolder folder = CommandFolder::Read(PosixEnv(), path_ + "/none");

  EXPECT_TRUE(folder.problems().empty());
  EXPECT_FALSE(folder.Find("x").ok());
}

TEST_F(CommandFolderTest, FactsTellSignatureProgramAndWhatIsMissing) {
  Write("good.yaml", std::string("good: ") + kEcho);
  Write("gone.yaml", "gone: { argv: [/nope/gone], package: gone-tools }");
  Write("bad.yaml", "bad: { argv: [x/y] }");

  ProgramHashes hashes;
  const std::map<std::string, std::string> facts = CommandFacts(Read(), hashes);

  EXPECT_EQ(facts.at("command.good"), "n:int:0..9223372036854775807=1");
  EXPECT_THAT(facts.at("command.good.program"),
              ::testing::MatchesRegex("/bin/echo sha256:[0-9a-f]+"));
  EXPECT_THAT(facts.at("command.gone.program"),
              HasSubstr("missing: /nope/gone is not there, or may not be executed; install "
                        "package gone-tools"));
  EXPECT_THAT(facts.at("command.bad.program"), HasSubstr("missing: its file is broken: "));
  EXPECT_FALSE(facts.contains("command.bad"));
}

TEST_F(CommandFolderTest, AProgramThatChangedIsHashedAnew) {
  const std::string path = path_ + "/program";
  Write("program", "one");
  ProgramHashes hashes;
  const std::string before = hashes.Hash(path).value();
  EXPECT_EQ(hashes.Hash(path).value(), before);

  Write("program", "two");

  EXPECT_NE(hashes.Hash(path).value(), before);
  EXPECT_EQ(hashes.Hash(path).value(), HashProgram(path).value());
  EXPECT_EQ(hashes.Hash(path_ + "/none").status().code(), StatusCode::kNotFound);
}

TEST_F(CommandFolderTest, AResolvedCommandNamesTheProgramByPathAndContent) {
  Write("good.yaml",
        "good: { argv: [sh, '{n}'], parameters: { n: { type: int } }, "
        "read: { n: { regex: '^(.*)$', unit: count } } }");
  const CommandFolder folder = Read();
  const Command& command = **folder.Find("good");

  const Result<v1::CommandToRun> resolved = ResolveCommand(command, {{"n", "7"}}, "/work");

  ASSERT_TRUE(resolved.ok()) << resolved.status().ToString();
  EXPECT_TRUE(resolved->arguments(0).starts_with('/')) << resolved->arguments(0);
  EXPECT_EQ(resolved->arguments(1), "7");
  EXPECT_EQ(resolved->program_sha256().size(), 64u);
  EXPECT_EQ(resolved->program_sha256(), *HashProgram(resolved->arguments(0)));
  EXPECT_EQ(RulesFromProto(*resolved).value(), command.read);
  EXPECT_EQ(ResolveCommand(command, {}, "/work").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pipeyard::commands
