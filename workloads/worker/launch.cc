#include "workloads/worker/launch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include "workloads/numa/affinity.h"
#include "workloads/numa/node_mask.h"
#include "workloads/worker/run.h"

namespace pipeyard::worker {
namespace {

constexpr char kSelf[] = "/proc/self/exe";

std::optional<int> ParseInteger(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

// A process whose parent died before it asked for the signal would never get it.
Status DieWithParent(int parent_pid) {
  const pid_t parent = parent_pid != 0 ? parent_pid : ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return ErrnoStatus("prctl PR_SET_PDEATHSIG", errno);
  // Where nobody said who the parent is, init is nobody's launcher but the heir of orphans.
  if (::getppid() != parent || (parent_pid == 0 && parent == 1)) {
    return Aborted(fmt::format("parent process {} has ended", parent));
  }
  return Status::Ok();
}

Status RunOn(const std::vector<int>& cpus) {
  const int error = numa::SetAffinity(cpus);
  if (error == 0) return Status::Ok();
  return ErrnoStatus("sched_setaffinity to CPUs " + numa::FormatNumberList(cpus), error);
}

Status SetLimits(int nice) {
  const rlimit no_core = {0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return ErrnoStatus("setrlimit RLIMIT_CORE", errno);
  if (nice != 0 && ::setpriority(PRIO_PROCESS, 0, nice) != 0) {
    return ErrnoStatus(fmt::format("setpriority to {}", nice), errno);
  }
  return Status::Ok();
}

// By its real name, so that lists of processes show it; by the kernel's handle where that name is
// gone (an upgrade meanwhile).
Status ExecuteSelf(const std::vector<std::string>& arguments) {
  char path[4096] = "";
  const ssize_t length = ::readlink(kSelf, path, sizeof(path) - 1);
  std::string program = length > 0 ? std::string(path, static_cast<size_t>(length)) : kSelf;
  std::vector<char*> pointers = {program.data()};
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::execv(kSelf, pointers.data());
  return ErrnoStatus("execute " + program, errno);
}

Status ExecuteProgram(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  return ErrnoStatus("execute " + arguments[0], errno);
}

}  // namespace

Result<LaunchOptions> ParseLaunchOptions(const std::string& affinity, const std::string& nice,
                                         const std::string& parent, std::string request_path,
                                         std::vector<std::string> arguments) {
  LaunchOptions options;
  options.request_path = std::move(request_path);
  options.arguments = std::move(arguments);
  if (options.arguments.empty()) return InvalidArgument("launch: `-- run ...` was meant");
  if (!affinity.empty()) {
    Result<std::vector<int>> cpus = numa::ParseNumberList(affinity, numa::kMaxCpu);
    if (!cpus.ok()) return cpus.status().WithContext("--affinity");
    options.cpus = std::move(*cpus);
  }
  if (!nice.empty()) {
    const std::optional<int> value = ParseInteger(nice);
    if (!value || *value < -20 || *value > 19) {
      return InvalidArgument(fmt::format("--nice '{}': -20 to 19 was meant", nice));
    }
    options.nice = *value;
  }
  if (!parent.empty()) {
    const std::optional<int> value = ParseInteger(parent);
    if (!value || *value < 1) {
      return InvalidArgument(fmt::format("--parent '{}': a process id was meant", parent));
    }
    options.parent_pid = *value;
  }
  return options;
}

Status Launch(const LaunchOptions& options) {
  PIPEYARD_RETURN_IF_ERROR(DieWithParent(options.parent_pid));
  PIPEYARD_RETURN_IF_ERROR(SetLimits(options.nice));
  if (!options.cpus.empty()) PIPEYARD_RETURN_IF_ERROR(RunOn(options.cpus));
  if (!options.request_path.empty()) {
    PIPEYARD_ASSIGN_OR_RETURN(const v1::WorkerRequest request, ReadRequest(options.request_path));
    TakePlacementOf(request);
  }
  return options.executes_program ? ExecuteProgram(options.arguments)
                                  : ExecuteSelf(options.arguments);
}

}  // namespace pipeyard::worker
