// The real program, met from outside: request in, result out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/process.h"
#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/definition.h"
#include "proto/settings/variant.h"
#include "workloads/load/histogram.h"

namespace pipeyard::worker {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

constexpr char kWorker[] = PIPEYARD_BIN_DIR "/pipeyard-worker";
constexpr char kAttempt[] = "01938a2b-7c00-7000-8000-000000000001";
constexpr int64_t kMillisecond = 1'000'000;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class WorkerProgram : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/worker_test." + std::to_string(::getpid()) + "." +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string StandardError() const { return ReadAll(Path("stderr")); }
  std::string StandardOutput() const { return ReadAll(Path("stdout")); }

  std::unique_ptr<Process> Start(std::vector<std::string> arguments) {
    SpawnOptions options;
    options.argv = {kWorker};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.stdout_path = Path("stdout");
    options.stderr_path = Path("stderr");
    Result<std::unique_ptr<Process>> process = Process::Spawn(options);
    EXPECT_TRUE(process.ok()) << process.status().ToString();
    return process.ok() ? std::move(*process) : nullptr;
  }

  // Of a worker that ends by itself.
  ExitStatus Run(std::vector<std::string> arguments) {
    const std::unique_ptr<Process> process = Start(std::move(arguments));
    const auto exited = process->Wait(Seconds(100));
    EXPECT_TRUE(exited.ok() && exited->has_value());
    return exited.ok() && exited->has_value() ? **exited : ExitStatus{.exit_code = -1};
  }

  v1::WorkerResult ReadResult() const {
    v1::WorkerResult result;
    EXPECT_TRUE(result.ParseFromString(ReadAll(Path("result.pb"))));
    return result;
  }

  v1::WorkerRequest Request(const std::string& target, Nanos duration,
                            std::map<std::string, settings::Value> values = {}) const {
    v1::WorkerRequest request;
    request.set_attempt_id(kAttempt);
    values["duration"] = int64_t{duration.count()};
    values["warmup"] = 5 * kMillisecond;
    const Result<settings::Variant> variant = settings::MakeVariant("transfer", target, values);
    EXPECT_TRUE(variant.ok()) << variant.status().ToString();
    *request.mutable_variant() = settings::ToProto(*variant);
    return request;
  }

  // Whether `launch` has done its part: the program has executed itself and its arguments begin
  // with `run`.
  static bool IsRunning(pid_t pid) {
    const std::string command = ReadAll("/proc/" + std::to_string(pid) + "/cmdline");
    const size_t end_of_name = command.find('\0');
    return end_of_name != std::string::npos && command.compare(end_of_name + 1, 3, "run") == 0;
  }

  std::vector<std::string> RunArguments(const std::string& request_bytes) const {
    std::ofstream(Path("request.pb"), std::ios::binary) << request_bytes;
    return {"run", "--request", Path("request.pb"), "--result", Path("result.pb")};
  }

  std::string folder_;
};

TEST_F(WorkerProgram, AnswersARequestWithAResultForEachTarget) {
  for (const std::string target : {"kernel", "engine"}) {
    SCOPED_TRACE(target);
    const ExitStatus exited = Run(RunArguments(Request(target, Seconds(1)).SerializeAsString()));

    ASSERT_TRUE(exited.ok()) << exited.ToString() << StandardError();
    v1::WorkerResult result;
    ASSERT_TRUE(result.ParseFromString(ReadAll(Path("result.pb"))));
    EXPECT_EQ(result.attempt_id(), kAttempt);
    EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
    EXPECT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("transfer").size());
    EXPECT_GT(result.elapsed_ns(), 1005 * kMillisecond);
    ASSERT_EQ(result.histograms_size(), 1);
    EXPECT_TRUE(load::Histogram::FromProto(result.histograms(0)).ok());
    EXPECT_GT(result.counters_size(), 0);
    EXPECT_FALSE(std::filesystem::exists(Path("result.pb.tmp")));
    EXPECT_THAT(StandardOutput(), HasSubstr("throughput"));
  }
}

TEST_F(WorkerProgram, EndsWithZeroAndAResultAlsoWhereTheHostCannot) {
  v1::WorkerRequest request;
  request.set_attempt_id(kAttempt);
  // No kernel pipe holds 2 GiB, whatever the privileges.
  const Result<settings::Variant> variant =
      settings::MakeVariant("transfer", "kernel", {{"pipe_bytes", int64_t{1} << 31}});
  ASSERT_TRUE(variant.ok()) << variant.status().ToString();
  *request.mutable_variant() = settings::ToProto(*variant);

  ASSERT_TRUE(Run(RunArguments(request.SerializeAsString())).ok()) << StandardError();
  v1::WorkerResult result;
  ASSERT_TRUE(result.ParseFromString(ReadAll(Path("result.pb"))));
  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "pipe_size_limit");
}

TEST_F(WorkerProgram, RefusesAMalformedRequestAndRunsNothing) {
  v1::WorkerRequest good = Request("kernel", Milliseconds(50));
  v1::WorkerRequest without_id = good;
  without_id.clear_attempt_id();
  v1::WorkerRequest without_variant = good;
  without_variant.clear_variant();
  v1::WorkerRequest unknown_workload = good;
  unknown_workload.mutable_variant()->set_workload("teleport");
  v1::WorkerRequest wrong_id = good;
  wrong_id.mutable_variant()->set_variant_id("0123456789abcdef");
  v1::WorkerRequest wrong_kind = good;
  for (v1::Setting& setting : *wrong_kind.mutable_variant()->mutable_settings()) {
    if (setting.name() == "writers") setting.mutable_value()->set_text("two");
  }
  v1::WorkerRequest out_of_range = good;
  for (v1::Setting& setting : *out_of_range.mutable_variant()->mutable_settings()) {
    if (setting.name() == "writers") setting.mutable_value()->set_integer(-1);
  }
  struct Case {
    std::string what;
    std::string bytes;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"empty", "", "no attempt_id"},
      {"noise", std::string("\xff\xff\xff\xff\xff", 5), "not a worker request"},
      {"cut off", good.SerializeAsString().substr(0, 50), "not a worker request"},
      {"no id", without_id.SerializeAsString(), "no attempt_id"},
      {"no variant", without_variant.SerializeAsString(), "no variant"},
      {"workload", unknown_workload.SerializeAsString(), "teleport"},
      {"variant id", wrong_id.SerializeAsString(), "0123456789abcdef"},
      {"kind", wrong_kind.SerializeAsString(), "writers"},
      {"range", out_of_range.SerializeAsString(), "writers"},
  };
  for (const Case& c : cases) {
    const ExitStatus exited = Run(RunArguments(c.bytes));
    EXPECT_EQ(exited.signal, 0) << c.what;
    EXPECT_EQ(exited.exit_code, 2) << c.what;
    EXPECT_THAT(StandardError(), HasSubstr(c.message)) << c.what;
    EXPECT_THAT(StandardError(), HasSubstr("request.pb")) << c.what;
    EXPECT_FALSE(std::filesystem::exists(Path("result.pb"))) << c.what;
  }
}

TEST_F(WorkerProgram, RefusesAMalformedCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, ""},
      {{"walk"}, "walk"},
      {{"run"}, "--request"},
      {{"run", "--request", "x"}, "--result"},
      {{"run", "--request", Path("absent"), "--result", Path("r")}, "ENOENT"},
      {{"run", "--request", "x", "--result", "y", "--workload", "transfer"}, "either"},
      {{"run", "--workload", "teleport"}, "teleport"},
      {{"run", "--workload", "transfer", "--target", "moon"}, "moon"},
      {{"run", "--workload", "transfer", "--set", "writers"}, "NAME=VALUE"},
      {{"run", "--workload", "transfer", "--set", "writerz=1"}, "did you mean writers?"},
      {{"run", "--workload", "transfer", "--set", "writers=0"}, "writers"},
      {{"run", "--workload", "transfer", "--set", "engine.page_cache=prealloc"}, "kernel"},
      {{"launch"}, "launch"},
      {{"launch", "--affinity", "3-1", "--", "run"}, "--affinity"},
      {{"launch", "--nice", "20", "--", "run"}, "--nice"},
      {{"launch", "--parent", "x", "--", "run"}, "--parent"},
  };
  for (const auto& [arguments, message] : cases) {
    const ExitStatus exited = Run(arguments);
    const std::string shown = arguments.empty() ? "(none)" : arguments.back();
    EXPECT_EQ(exited.exit_code, 2) << shown;
    EXPECT_THAT(StandardError(), HasSubstr(message)) << shown;
  }
}

TEST_F(WorkerProgram, RunsByHandAndSaysWhatItMeasured) {
  const ExitStatus exited = Run({"run", "--workload", "transfer", "--set", "writers=2", "--set",
                                 "duration=1s", "--set", "warmup=0"});

  EXPECT_TRUE(exited.ok()) << StandardError();
  EXPECT_THAT(StandardOutput(), HasSubstr("latency_p99"));
  EXPECT_THAT(StandardOutput(), HasSubstr("self-check closed-loop-latency"));
  EXPECT_THAT(StandardOutput(), HasSubstr("message-buffers (move_pages)"));
}

TEST_F(WorkerProgram, ByHandFailsWhereTheAttemptIsNotOk) {
  const ExitStatus exited = Run({"run", "--workload", "transfer", "--set", "knob.ksm=1"});

  EXPECT_EQ(exited.exit_code, 1);
  EXPECT_THAT(StandardOutput(), HasSubstr("not supported yet"));
}

TEST_F(WorkerProgram, LeavesNoResultWhenKilled) {
  const std::unique_ptr<Process> process =
      Start(RunArguments(Request("kernel", Seconds(60)).SerializeAsString()));
  ASSERT_TRUE(process->Kill(SIGKILL).ok());
  const auto exited = process->Wait(Seconds(30));

  ASSERT_TRUE(exited.ok() && exited->has_value());
  EXPECT_EQ((*exited)->signal, SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(Path("result.pb")));
  EXPECT_FALSE(std::filesystem::exists(Path("result.pb.tmp")));
}

TEST_F(WorkerProgram, FailsWhereTheResultCannotBeWritten) {
  std::vector<std::string> arguments =
      RunArguments(Request("kernel", Milliseconds(20)).SerializeAsString());
  arguments.back() = Path("no/such/folder/result.pb");

  EXPECT_EQ(Run(arguments).exit_code, 1);
  EXPECT_THAT(StandardError(), HasSubstr("no/such/folder"));
}

TEST_F(WorkerProgram, LaunchSetsAffinityNicenessAndNoCoreFiles) {
  std::vector<std::string> arguments =
      RunArguments(Request("kernel", Seconds(60)).SerializeAsString());
  arguments.insert(arguments.begin(), {"launch", "--affinity", "0", "--nice", "5", "--parent",
                                       std::to_string(::getpid()), "--"});
  const std::unique_ptr<Process> process = Start(arguments);
  const std::string base = "/proc/" + std::to_string(process->pid());
  while (!IsRunning(process->pid())) {
    ASSERT_FALSE(process->Wait(Milliseconds(1))->has_value()) << StandardError();
  }

  rlimit core = {1, 1};
  ASSERT_EQ(::prlimit(process->pid(), RLIMIT_CORE, nullptr, &core), 0);
  EXPECT_EQ(core.rlim_cur, 0u);
  EXPECT_EQ(core.rlim_max, 0u);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(process->pid())), 5);
  EXPECT_THAT(ReadAll(base + "/status"), HasSubstr("Cpus_allowed_list:\t0\n"));
  EXPECT_EQ(ReadAll(base + "/comm"), "pipeyard-worker\n");
}

TEST_F(WorkerProgram, LaunchTakesOnThePlacementThatTheRequestCommands) {
  const std::string request =
      Request("kernel", Seconds(60), {{"placement.cpus", "0"s}, {"placement.memory", "bind:0"s}})
          .SerializeAsString();
  std::vector<std::string> arguments = RunArguments(request);
  arguments.insert(arguments.begin(), {"launch", "--request", Path("request.pb"), "--"});
  const std::unique_ptr<Process> process = Start(arguments);
  const std::string base = "/proc/" + std::to_string(process->pid());
  while (!IsRunning(process->pid())) {
    ASSERT_FALSE(process->Wait(Milliseconds(1))->has_value()) << StandardError();
  }

  EXPECT_THAT(ReadAll(base + "/status"), HasSubstr("Cpus_allowed_list:\t0\n"));
  EXPECT_THAT(ReadAll(base + "/numa_maps"), HasSubstr("bind:0"));
}

TEST_F(WorkerProgram, APlacementThatWasNotTakenOnIsVoid) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "every placement is on one CPU";
  const ExitStatus exited = Run(RunArguments(
      Request("kernel", Milliseconds(20), {{"placement.cpus", "0"s}}).SerializeAsString()));

  ASSERT_TRUE(exited.ok()) << StandardError();
  const v1::WorkerResult result = ReadResult();
  EXPECT_EQ(result.outcome(), v1::OUTCOME_VOID);
  EXPECT_EQ(result.reason_code(), "placement_not_obtained");
  EXPECT_THAT(result.reason_text(), HasSubstr("placement.cpus"));
}

TEST_F(WorkerProgram, AHostWithoutTheNodesThatAreCommandedIsNotApplicable) {
  for (const auto& [name, value, code] :
       {std::tuple("placement.cpus", "node63", "no_such_node"),
        std::tuple("placement.cpus", "8000", "no_such_cpu"),
        std::tuple("placement.memory", "bind:63", "no_such_node")}) {
    std::vector<std::string> arguments = RunArguments(
        Request("kernel", Milliseconds(20), {{name, std::string(value)}}).SerializeAsString());
    arguments.insert(arguments.begin(), {"launch", "--request", Path("request.pb"), "--"});
    ASSERT_TRUE(Run(arguments).ok()) << StandardError();

    const v1::WorkerResult result = ReadResult();
    EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE) << value;
    EXPECT_EQ(result.reason_code(), code);
    EXPECT_THAT(result.reason_text(), HasSubstr(name));
  }
}

TEST_F(WorkerProgram, DiesWithTheProcessThatLaunchedIt) {
  const std::vector<std::string> run =
      RunArguments(Request("kernel", Seconds(60)).SerializeAsString());
  std::string line = std::string(kWorker) + " launch --";
  for (const std::string& argument : run) line += " " + argument;
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", line + " & echo $!; wait"};
  options.stdout_path = Path("stdout");
  options.stderr_path = Path("stderr");
  options.new_process_group = false;  // the signal is for the shell alone
  const auto shell = Process::Spawn(options);
  ASSERT_TRUE(shell.ok());
  int worker = 0;
  do {
    ASSERT_FALSE((*shell)->Wait(Milliseconds(1))->has_value()) << StandardError();
    std::istringstream(StandardOutput()) >> worker;
  } while (worker == 0 || !IsRunning(worker));
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, worker, 0));
  ASSERT_GE(pidfd, 0);

  ASSERT_TRUE((*shell)->Kill(SIGKILL).ok());

  pollfd wanted = {.fd = pidfd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wanted, 1, 100'000), 1);
  ::close(pidfd);
  EXPECT_FALSE(std::filesystem::exists(Path("result.pb")));
}

TEST_F(WorkerProgram, WhenKilledLeavesNoWorkerProcessBehind) {
  for (const std::string target : {"kernel", "engine"}) {
    const std::unique_ptr<Process> process =
        Start({"run", "--workload", "transfer", "--target", target, "--set", "workers=processes",
               "--set", "duration=60s", "--set", "readers=3"});
    const std::string pid = std::to_string(process->pid());
    std::vector<int> workers;
    while (workers.size() < 4) {
      ASSERT_FALSE(process->Wait(Milliseconds(1))->has_value()) << StandardOutput();
      std::istringstream children(ReadAll("/proc/" + pid + "/task/" + pid + "/children"));
      workers.assign(std::istream_iterator<int>(children), {});
    }
    std::vector<pollfd> ends;
    for (const int worker : workers) {
      ends.push_back({static_cast<int>(::syscall(SYS_pidfd_open, worker, 0)), POLLIN, 0});
    }
    // The worker alone, not its group.
    ASSERT_EQ(::kill(process->pid(), SIGKILL), 0);

    for (pollfd& end : ends) {
      EXPECT_EQ(::poll(&end, 1, 100'000), 1) << target;
      ::close(end.fd);
    }
    ASSERT_TRUE(process->Wait(Seconds(30))->has_value());
  }
}

TEST_F(WorkerProgram, LaunchEndsWhereItsParentHasGone) {
  const ExitStatus exited = Run({"launch", "--parent", "1", "--", "run"});

  EXPECT_EQ(exited.exit_code, 2);
  EXPECT_THAT(StandardError(), HasSubstr("parent process 1 has ended"));
}

TEST_F(WorkerProgram, SaysItsVersionAndHelp) {
  EXPECT_TRUE(Run({"--version"}).ok());
  EXPECT_THAT(StandardOutput(), HasSubstr("pipeyard-worker"));
  EXPECT_TRUE(Run({"--help"}).ok());
  EXPECT_THAT(StandardOutput(), HasSubstr("launch"));
}

}  // namespace
}  // namespace pipeyard::worker
