#include "proto/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "proto/options/config_file.h"

namespace pipeyard::options {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Program Daemon() {
  return {.name = "daemon",
          .help = "A daemon",
          .footer = "",
          .options = {{.name = "state",
                       .value_name = "DIR",
                       .help = "state folder",
                       .default_value = "somewhere"},
                      {.name = "insecure", .help = "no certificates"}},
          .commands = {}};
}

Program Cli() {
  return {.name = "cli",
          .help = "A command line",
          .footer = "",
          .options = {{.name = "controller",
                       .value_name = "ADDR",
                       .help = "its address",
                       .default_value = "127.0.0.1:7420"}},
          .commands = {
              {.path = "sweep submit",
               .help = "submit",
               .positionals = {{.name = "FILE", .help = "sweep"}},
               .options =
                   {{.name = "set", .value_name = "NAME=VALUE", .help = "replace", .repeats = true},
                    {.name = "output",
                     .short_name = 'o',
                     .value_name = "FORMAT",
                     .help = "format",
                     .default_value = "table",
                     .choices = {"table", "json"}}}},
              {.path = "sweep plan",
               .help = "plan",
               .positionals = {{.name = "FILE", .help = "sweep"}}},
              {.path = "stat",
               .help = "compare",
               .positionals = {{.name = "A", .help = "a"}, {.name = "B", .help = "b"}}},
              {.path = "launch", .help = "launch", .takes_rest = true}}};
}

ParseResult ParseWords(const Program& program, std::vector<const char*> words,
                       std::map<std::string, std::string> environment = {}) {
  words.insert(words.begin(), program.name.c_str());
  return Parse(program, static_cast<int>(words.size()), words.data(),
               [&](const std::string& name) -> std::optional<std::string> {
                 const auto found = environment.find(name);
                 if (found == environment.end()) return std::nullopt;
                 return found->second;
               });
}

// A file that goes with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    char name[] = "/tmp/pipeyard-options.XXXXXX";
    const int fd = ::mkstemp(name);
    ::close(fd);
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(Options, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const TemporaryFile file("state: from-file\n");
  const std::map<std::string, std::string> environment{{"PIPEYARD_STATE", "from-environment"}};

  EXPECT_EQ(ParseWords(Daemon(), {}).parsed.Get("state"), "somewhere");
  EXPECT_EQ(ParseWords(Daemon(), {"--config", file.path()}).parsed.Get("state"), "from-file");
  EXPECT_EQ(ParseWords(Daemon(), {"--config", file.path()}, environment).parsed.Get("state"),
            "from-environment");
  EXPECT_EQ(ParseWords(Daemon(), {"--state", "from-flag", "--config", file.path()}, environment)
                .parsed.Get("state"),
            "from-flag");
}

TEST(Options, UnknownKeyOfTheFileIsToldWithItsPlace) {
  const TemporaryFile file("insecure: true\nstat: x\n");

  const ParseResult result = ParseWords(Daemon(), {"--config", file.path()});

  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err, HasSubstr(std::string(file.path()) +
                                    ":2:1: unknown key 'stat'; did you mean 'state'?"));
}

TEST(Options, FlagOfTheFileIsTrueOrFalse) {
  const TemporaryFile yes("insecure: true\n");
  const TemporaryFile no("insecure: false\n");
  const TemporaryFile maybe("insecure: maybe\n");

  EXPECT_TRUE(ParseWords(Daemon(), {"--config", yes.path()}).parsed.Flag("insecure"));
  EXPECT_FALSE(ParseWords(Daemon(), {"--config", no.path()}).parsed.Flag("insecure"));
  EXPECT_EQ(ParseWords(Daemon(), {"--config", maybe.path()}).exit_status, 2);
}

TEST(Options, UnknownCommandNamesTheNearest) {
  const ParseResult noun = ParseWords(Cli(), {"swep", "submit", "x"});
  const ParseResult verb = ParseWords(Cli(), {"--controller", "a:1", "sweep", "submt", "x"});

  EXPECT_EQ(noun.exit_status, 2);
  EXPECT_THAT(noun.err, HasSubstr("there is no command 'swep'; did you mean 'sweep'?"));
  EXPECT_TRUE(noun.out.empty());
  EXPECT_EQ(verb.exit_status, 2);
  EXPECT_THAT(verb.err, HasSubstr("did you mean 'sweep submit'?"));
}

TEST(Options, UnknownOptionNamesTheNearest) {
  const ParseResult result = ParseWords(Cli(), {"sweep", "submit", "x.yaml", "--sett", "a=1"});

  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean '--set'?"));
}

TEST(Options, ProgramOptionsAreKnownAfterTheCommandToo) {
  const ParseResult result =
      ParseWords(Cli(), {"sweep", "submit", "x.yaml", "--controller", "host:1", "--set", "a=1",
                         "--set", "b=[1, 2]", "-o", "json"});

  ASSERT_EQ(result.exit_status, std::nullopt) << result.err;
  EXPECT_EQ(result.parsed.command(), "sweep submit");
  EXPECT_EQ(result.parsed.Get("controller"), "host:1");
  EXPECT_EQ(result.parsed.Get("FILE"), "x.yaml");
  EXPECT_EQ(result.parsed.Get("output"), "json");
  EXPECT_THAT(result.parsed.GetAll("set"), ElementsAre("a=1", "b=[1, 2]"));
}

TEST(Options, WrongChoiceIsTold) {
  const ParseResult result = ParseWords(Cli(), {"sweep", "submit", "x.yaml", "-o", "jsn"});

  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err, HasSubstr("--output takes table, json, not 'jsn'; did you mean 'json'?"));
}

TEST(Options, OneDashIsAPositional) {
  const ParseResult result = ParseWords(Cli(), {"stat", "-", "b.txt"});

  ASSERT_EQ(result.exit_status, std::nullopt) << result.err;
  EXPECT_EQ(result.parsed.Get("A"), "-");
  EXPECT_EQ(result.parsed.Get("B"), "b.txt");
}

TEST(Options, WhatFollowsTwoDashesIsLeftAlone) {
  const ParseResult result = ParseWords(Cli(), {"launch", "--", "run", "--request", "x"});

  ASSERT_EQ(result.exit_status, std::nullopt) << result.err;
  EXPECT_THAT(result.parsed.rest(), ElementsAre("run", "--request", "x"));
}

TEST(Options, HelpAndVersionGoToStdoutWithZero) {
  const ParseResult help = ParseWords(Cli(), {"sweep", "submit", "--help"});
  const ParseResult version = ParseWords(Daemon(), {"--version"});

  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.out, HasSubstr("--set"));
  EXPECT_THAT(help.out, HasSubstr("Usage: cli sweep submit"));
  EXPECT_THAT(ParseWords(Cli(), {"--help"}).out, HasSubstr("its address (default 127.0.0.1:7420)"));
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_EQ(version.out, "daemon " + Version() + "\n");
}

TEST(Options, MissingCommandIsToldWithTheChoice) {
  EXPECT_THAT(ParseWords(Cli(), {}).err,
              HasSubstr("a command is missing after 'cli': sweep, stat, launch"));
  EXPECT_THAT(ParseWords(Cli(), {"sweep"}).err,
              HasSubstr("a command is missing after 'cli sweep': submit, plan"));
}

TEST(Options, EscapesInAWordAreNotEchoed) {
  EXPECT_THAT(ParseWords(Cli(), {"\x1b[2J"}).err, HasSubstr("there is no command '\\x1b[2J'"));
  EXPECT_THAT(ParseWords(Cli(), {"--\x1b[2J"}).err, ::testing::Not(HasSubstr("\x1b")));
}

TEST(Options, MissingPositionalIsAMistake) {
  const ParseResult result = ParseWords(Cli(), {"sweep", "submit"});

  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err, HasSubstr("FILE"));
}

TEST(Options, StateFolderFollowsXdg) {
  const auto with = [](std::map<std::string, std::string> values) {
    return [values](const std::string& name) -> std::optional<std::string> {
      const auto found = values.find(name);
      if (found == values.end()) return std::nullopt;
      return found->second;
    };
  };

  EXPECT_EQ(DefaultStateDir("controller", with({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}})),
            "/s/pipeyard/controller");
  EXPECT_EQ(DefaultStateDir("controller", with({{"HOME", "/h"}})),
            "/h/.local/state/pipeyard/controller");
  EXPECT_EQ(DefaultStateDir("controller", with({})), "/var/lib/pipeyard/controller");
}

TEST(ConfigFile, MalformedFilesAreErrorsWithAPlace) {
  for (const char* text : {"- a\n- b\n", "a: {b: 1}\n", "a: 1\na: 2\n", "a: [1, {b: 2}]\n",
                           "a: [1\n", "\x01\x02: [", "? [a]\n: 1\n"}) {
    const Result<std::vector<ConfigEntry>> entries = ReadConfig(text, "c.yaml");
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_THAT(entries.status().message(), ::testing::StartsWith("c.yaml:")) << text;
  }
  EXPECT_FALSE(ReadConfig(std::string(20'000, '['), "c.yaml").ok());
  EXPECT_TRUE(ReadConfig("", "c.yaml")->empty());
}

}  // namespace
}  // namespace pipeyard::options
