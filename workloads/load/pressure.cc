#include "workloads/load/pressure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/load/commanded_placement.h"
#include "workloads/load/result_fields.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::load {
namespace {

constexpr char kProgram[] = "stress-ng";
// Its parent process ends its children on SIGTERM; pipe_bench gives it as long.
constexpr Nanos kTermPatience = Seconds(2);
constexpr Nanos kKillPatience = Seconds(10);

std::vector<std::string> ArgumentsOf(std::string_view preset) {
  if (preset == "stress-vm-50") return {"--vm", "2", "--vm-bytes", "50%", "--vm-keep"};
  if (preset == "stress-vm-80") return {"--vm", "4", "--vm-bytes", "80%", "--vm-method", "all"};
  return {};
}

// "" where no folder of `search_path` has it.
std::string FindProgram(const std::string& search_path) {
  for (size_t begin = 0; begin <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string path = search_path.substr(begin, end - begin) + "/" + kProgram;
    if (end > begin && ::access(path.c_str(), X_OK) == 0) return path;
    begin = end + 1;
  }
  return "";
}

Judgement Ended(const std::string& command, const std::string& how) {
  return Void(
      "pressure_ended",
      fmt::format("pressure: {} ended early ({}); run it by hand to see why", command, how));
}

}  // namespace

Judgement Pressure::Start(std::string_view preset, const std::string& search_path,
                          const Surroundings& surroundings, std::unique_ptr<Pressure>& pressure,
                          v1::WorkerResult& result) {
  if (preset == "none") return {};
  const std::string program = FindProgram(search_path);
  if (program.empty()) {
    return NotApplicable("program_missing",
                         fmt::format("pressure: {} needs {}, which is not in {}; install the "
                                     "package stress-ng",
                                     preset, kProgram, search_path));
  }
  std::vector<std::string> command = {program};
  for (std::string& argument : ArgumentsOf(preset)) command.push_back(std::move(argument));
  SpawnOptions options;
  options.argv = surroundings.launcher;
  options.argv.insert(options.argv.end(), command.begin(), command.end());
  options.environment = {"PATH=" + search_path, "LC_ALL=C"};
  options.new_process_group = false;
  std::unique_ptr<Pressure> started(new Pressure(fmt::format("{}", fmt::join(command, " "))));
  Result<std::unique_ptr<Process>> process = [&] {
    const Unplaced unplaced(surroundings.placement, numa::SystemNumaKernel());
    return Process::Spawn(options);
  }();
  if (!process.ok()) {
    return Void("pressure_ended", "pressure: " + std::string(process.status().message()));
  }
  started->process_ = std::move(*process);
  AddResolved("pressure", std::string(preset), started->command_, result);
  if (Judgement judged = started->CheckAlive(kLead); !judged.ok()) return judged;
  pressure = std::move(started);
  return {};
}

Pressure::~Pressure() { End(); }

void Pressure::End() {
  const std::unique_ptr<Process> process = std::move(process_);
  if (process == nullptr) return;
  static_cast<void>(process->Kill(SIGTERM));
  const auto ended = process->Wait(kTermPatience);
  if (ended.ok() && ended->has_value()) return;
  static_cast<void>(process->Kill(SIGKILL));
  static_cast<void>(process->Wait(kKillPatience));
}

Judgement Pressure::CheckAlive(Nanos patience) {
  const Result<std::optional<ExitStatus>> ended = process_->Wait(patience);
  if (!ended.ok()) return Ended(command_, ended.status().message());
  return ended->has_value() ? Ended(command_, (*ended)->ToString()) : Judgement{};
}

Judgement Pressure::Stop() {
  Judgement judged = CheckAlive(Nanos(0));
  End();
  return judged;
}

}  // namespace pipeyard::load
