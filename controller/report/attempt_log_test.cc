#include "controller/report/attempt_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "controller/report/reproduce.h"
#include "proto/settings/variant.h"

namespace pipeyard::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using Values = std::map<std::string, settings::Value>;

v1::AttemptLog LogOf(const std::string& workload, const std::string& target, const Values& values) {
  v1::AttemptLog log;
  log.set_run_id("0190");
  log.set_sweep("s");
  log.set_host("vera");
  log.set_variant_id("aa11");
  log.set_trial_index(3);
  *log.mutable_settings() = settings::ToProto(*settings::MakeVariant(workload, target, values));
  log.mutable_attempt()->set_number(2);
  log.mutable_attempt()->set_attempt_id("a2");
  log.mutable_attempt()->set_outcome("failed");
  log.mutable_attempt()->set_reason("hung: no part of a message arrived");
  log.mutable_attempt()->set_elapsed_ns(2'000'000'000);
  return log;
}

TEST(LogText, KeepsLinesAndEscapesWhatMovesTheCursor) {
  v1::AttemptLog log = LogOf("transfer", "kernel", {});
  v1::Output& output = *log.add_outputs();
  output.set_stream("stderr");
  output.set_omitted_bytes(2048);
  output.set_data("one\ttab\ntwo\x1b[2J\nno end");
  v1::ResolvedValue& value = *log.add_resolved();
  value.set_name("placement.cpus");
  value.set_as_written("50%cpus");
  value.set_resolved("0");

  EXPECT_EQ(LogText(log),
            "vera/aa11/3 attempt 2 (a2): failed (hung: no part of a message arrived) after 2 s\n"
            "placement.cpus: 50%cpus became 0\n"
            "--- stderr, without its first 2KiB\n"
            "one\ttab\n"
            "two\\x1b[2J\n"
            "no end\n");
  EXPECT_THAT(LogJson(log), HasSubstr("\"schema\": \"pipeyard.run-log/v1\""));
  EXPECT_THAT(LogJson(log), HasSubstr("\"omitted_bytes\": 2048"));
}

TEST(LogText, SaysThatNothingWasPrinted) {
  EXPECT_THAT(LogText(LogOf("transfer", "kernel", {})), HasSubstr("It printed nothing."));
}

TEST(ReproduceScript, HasTheSettingsThatAreNoDefaults) {
  const auto script = ReproduceScript(LogOf("transfer", "engine",
                                            {{"writers", int64_t{2}},
                                             {"duration", int64_t{2'000'000'000}},
                                             {"engine.page_cache", std::string("prealloc")}}),
                                      "1.2.3");

  ASSERT_TRUE(script.ok()) << script.status().message();
  EXPECT_THAT(*script, HasSubstr("pipeyard-worker run --workload transfer --target engine"));
  EXPECT_THAT(*script, HasSubstr("--set duration=2s"));
  EXPECT_THAT(*script, HasSubstr("--set engine.page_cache=prealloc"));
  EXPECT_THAT(*script, HasSubstr("--set writers=2"));
  EXPECT_THAT(*script, Not(HasSubstr("readers=")));
  EXPECT_THAT(*script, HasSubstr("*1.2.3*"));
  EXPECT_THAT(*script, Not(HasSubstr("hackbench")));
}

TEST(ReproduceScript, MessagingOnTheKernelIsHackbenchUnderItsPlacement) {
  v1::AttemptLog log = LogOf("messaging", "kernel",
                             {{"groups", int64_t{2}},
                              {"fds", int64_t{5}},
                              {"duration", int64_t{1'000'000'000}},
                              {"placement.cpus", std::string("node0")},
                              {"placement.memory", std::string("bind:0")}});
  v1::ResolvedValue& cpus = *log.add_resolved();
  cpus.set_name("placement.cpus");
  cpus.set_as_written("node0");
  cpus.set_resolved("0-3");
  v1::Counter& messages = *log.mutable_attempt()->add_counters();
  messages.set_name("messages");
  messages.set_value(2 * 5 * 5 * 70 + 3);

  const std::string script = *ReproduceScript(log, "1");

  // As many loops as there were within the second.
  EXPECT_THAT(script,
              HasSubstr("taskset -c 0-3 numactl --membind=0 hackbench -p -T -g 2 -f 5 -s 100 "
                        "-l 70\n"));
  EXPECT_THAT(script, HasSubstr("need hackbench 'install the package rt-tests'"));
}

TEST(ReproduceScript, ACommandIsTheLineThatRanAndItsProgramIsCompared) {
  v1::AttemptLog log =
      LogOf("command", "command",
            {{"command", std::string("hackbench")}, {"placement.cpus", std::string("0")}});
  EXPECT_EQ(ReproduceScript(log, "1").status().code(), StatusCode::kFailedPrecondition);
  v1::ResolvedValue& program = *log.add_resolved();
  program.set_name("program_sha256");
  program.set_as_written("/usr/bin/hack bench");
  program.set_resolved("abc");
  v1::ResolvedValue& line = *log.add_resolved();
  line.set_name("command_line");
  line.set_as_written("hackbench");
  line.set_resolved("'/usr/bin/hack bench' -p");

  const std::string script = *ReproduceScript(log, "1");

  EXPECT_THAT(script, HasSubstr("need '/usr/bin/hack bench' "));
  EXPECT_THAT(script, HasSubstr("echo 'abc  /usr/bin/hack bench' | sha256sum --check"));
  EXPECT_THAT(script, HasSubstr("taskset -c 0 '/usr/bin/hack bench' -p\n"));
  EXPECT_THAT(script, Not(HasSubstr("pipeyard-worker run")));
}

TEST(ReproduceScript, SaysWhereNumactlHasNoWordForThePolicy) {
  EXPECT_THAT(
      *ReproduceScript(LogOf("messaging", "kernel",
                             {{"placement.memory", std::string("weighted-interleave:0,1")}}),
                       "1"),
      HasSubstr("numactl no word"));
}

TEST(ReproduceScript, NothingOfTheRunReachesTheShell) {
  v1::AttemptLog log = LogOf(
      "transfer", "engine",
      {{"engine.topology",
        settings::JsonText{
            R"({"distances":[[10]],"nodes":[{"cpus":1,"memory":67108864}],"remote_access":0})"}}});
  log.set_sweep("x\n$(reboot)");
  log.mutable_attempt()->set_reason("a\nb");

  const std::string script = *ReproduceScript(log, "1");

  EXPECT_THAT(script, HasSubstr("--set 'engine.topology={"));
  EXPECT_THAT(script, Not(HasSubstr("\n$(reboot)")));
  EXPECT_THAT(script, Not(HasSubstr("\nb")));
}

}  // namespace
}  // namespace pipeyard::report
