// pipe_differential: the differential tester's longer mode, and the replay of a case that it
// printed.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "workloads/pipe/differential/actor_comparison.h"
#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

constexpr char kUsage[] =
    "usage: pipe_differential [--operations N] [--seed S] [--actors N] [--unprivileged]\n"
    "                         [--page-cache NAME] [--wakeup NAME] [--poll-wakeup NAME]\n"
    "                         [--polls on|off]\n"
    "       pipe_differential --replay FILE\n"
    "Applies random operations to pipe2(2) and to the engine and compares all that can be seen.\n"
    "Exit status: 0 all agreed, 1 a difference (its smallest program is printed), 2 usage.\n";

struct Arguments {
  RunSettings settings;
  uint64_t operations = 10'000'000;
  uint64_t seed = 1;
  std::string replay;
};

Result<uint64_t> ParseCount(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return InvalidArgument(name + ": a number is expected");
  return value;
}

Result<Arguments> ParseArguments(int argc, char** argv) {
  Arguments arguments;
  if (const char* seed = std::getenv("PIPEYARD_SEED"); seed != nullptr) {
    PIPEYARD_ASSIGN_OR_RETURN(arguments.seed, ParseCount("PIPEYARD_SEED", seed));
  }
  std::vector<std::pair<std::string, std::string>> settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--unprivileged") {
      settings.emplace_back("unprivileged", "on");
      continue;
    }
    if (i + 1 == argc) return InvalidArgument(name + ": a value is expected");
    const std::string value = argv[++i];
    if (name == "--operations") {
      PIPEYARD_ASSIGN_OR_RETURN(arguments.operations, ParseCount(name, value));
    } else if (name == "--seed") {
      PIPEYARD_ASSIGN_OR_RETURN(arguments.seed, ParseCount(name, value));
    } else if (name == "--replay") {
      arguments.replay = value;
    } else if (name.rfind("--", 0) == 0) {
      std::string setting = name.substr(2);
      std::replace(setting.begin(), setting.end(), '-', '_');
      settings.emplace_back(setting, value);
    } else {
      return InvalidArgument("there is no option " + name);
    }
  }
  PIPEYARD_ASSIGN_OR_RETURN(arguments.settings, ParseSettings(settings));
  return arguments;
}

ComparisonReport CompareOnce(const Arguments& arguments) {
  if (arguments.settings.num_actors == 1) {
    return Compare(arguments.settings, MakeEngineSubject, arguments.seed, arguments.operations);
  }
  ActorReport report =
      CompareActors(arguments.settings, MakeEngineSystem, arguments.seed, arguments.operations);
  if (!report.is_usable) report.report.difference = "/proc does not tell what a thread waits for";
  return report.report;
}

// What differed, after a line of numbers; empty: nothing.
std::string CompareAll(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const ComparisonReport report = CompareOnce(arguments);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("PIPEYARD_SEED=%llu: %llu operations in %llu programs, %.1f s, %.0f operations/s\n",
              static_cast<unsigned long long>(arguments.seed),
              static_cast<unsigned long long>(report.num_operations),
              static_cast<unsigned long long>(report.num_programs), seconds.count(),
              static_cast<double>(report.num_operations) / seconds.count());
  std::fflush(stdout);
  return report.difference;
}

Role RoleOf(const RunSettings& settings) {
  return settings.is_unprivileged ? Role::kUnprivileged : Role::kAsIs;
}

Result<std::string> ReplayFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return NotFound("read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  PIPEYARD_ASSIGN_OR_RETURN(const Program program, ParseProgram(text.str()));
  PIPEYARD_ASSIGN_OR_RETURN(const RunSettings settings, ParseSettings(program.settings));
  return RunAs(RoleOf(settings), [&] {
    return settings.num_actors == 1 ? Replay(program, MakeEngineSubject)
                                    : ReplayActors(program, MakeEngineSystem);
  });
}

int Main(int argc, char** argv) {
  const Result<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments.ok()) {
    std::cerr << "pipe_differential: " << arguments.status().message() << "\n" << kUsage;
    return 2;
  }
  const Result<std::string> difference =
      !arguments->replay.empty()
          ? ReplayFile(arguments->replay)
          : RunAs(RoleOf(arguments->settings), [&] { return CompareAll(*arguments); });
  if (!difference.ok()) {
    std::cerr << "pipe_differential: " << difference.status().ToString() << "\n";
    return 2;
  }
  if (!difference->empty()) {
    std::cout << *difference << std::endl;
    return 1;
  }
  std::cout << "all agreed" << std::endl;
  return 0;
}

}  // namespace
}  // namespace pipeyard::pipe::differential

int main(int argc, char** argv) { return pipeyard::pipe::differential::Main(argc, argv); }
