#include "controller/cli/local_fleet.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "workloads/commands/presets.h"

namespace pipeyard::cli {
namespace {

constexpr Nanos kStartTimeout = Seconds(30);
constexpr Nanos kStopTimeout = Seconds(10);
constexpr Nanos kPollInterval = Milliseconds(20);
constexpr size_t kLogTailBytes = 600;

std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    // Addresses and folders of the user's own daemons must not reach these.
    if (!std::string_view(*entry).starts_with("PIPEYARD_")) environment.emplace_back(*entry);
  }
  return environment;
}

// Who starts the demo wants its sweeps run, and they name presets only.
Status AllowPresets(Env& env, const std::string& folder) {
  PIPEYARD_RETURN_IF_ERROR(env.CreateDirs(folder));
  for (const std::string_view name : commands::PresetNames()) {
    PIPEYARD_RETURN_IF_ERROR(env.WriteFileAtomic(fmt::format("{}/{}.yaml", folder, name),
                                                 fmt::format("{0}: {{ preset: {0} }}\n", name)));
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<LocalFleet>> LocalFleet::Start(Env& env, const std::string& state_dir,
                                                      int num_hosts) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string programs, ProgramDir());
  std::unique_ptr<LocalFleet> fleet(new LocalFleet(env));
  const std::string controller_dir = state_dir + "/controller";
  PIPEYARD_RETURN_IF_ERROR(env.CreateDirs(controller_dir));
  // A folder that is used again holds the address of an earlier life.
  const std::string address_path = controller_dir + "/controller.addr";
  if (env.Exists(address_path)) PIPEYARD_RETURN_IF_ERROR(env.RemoveFile(address_path));
  PIPEYARD_RETURN_IF_ERROR(
      fleet->Spawn("controller",
                   {programs + "/pipeyard-controller", "--state", controller_dir, "--listen",
                    "127.0.0.1:0", "--http", "127.0.0.1:0"},
                   state_dir + "/controller.log"));
  PIPEYARD_RETURN_IF_ERROR(fleet->WaitForController(address_path));
  for (int i = 1; i <= num_hosts; ++i) {
    const std::string name = fmt::format("demo{}", i);
    PIPEYARD_RETURN_IF_ERROR(AllowPresets(env, state_dir + "/" + name + "/commands.d"));
    PIPEYARD_RETURN_IF_ERROR(
        fleet->Spawn(name,
                     {programs + "/pipeyard-agent", "--state", state_dir + "/" + name,
                      "--controller", fleet->grpc_address_, "--name", name},
                     fmt::format("{}/{}.log", state_dir, name)));
  }
  return fleet;
}

LocalFleet::~LocalFleet() { Stop(); }

Status LocalFleet::Spawn(const std::string& name, std::vector<std::string> argv,
                         const std::string& log_path) {
  SpawnOptions options;
  options.argv = std::move(argv);
  options.environment = Environment();
  options.stdout_path = "";
  options.stderr_path = log_path;
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Spawn(options));
  members_.push_back({name, log_path, std::move(process)});
  return Status::Ok();
}

Status LocalFleet::WaitForController(const std::string& address_path) {
  const MonotonicTime deadline = SystemClock().Now() + kStartTimeout;
  while (!env_.Exists(address_path)) {
    PIPEYARD_RETURN_IF_ERROR(Check());
    if (SystemClock().Now() > deadline) {
      return DeadlineExceeded(fmt::format("the controller did not start within 30 s; its log is {}",
                                          members_[0].log_path));
    }
    ::poll(nullptr, 0, static_cast<int>(kPollInterval.count() / 1'000'000));
  }
  PIPEYARD_ASSIGN_OR_RETURN(const std::string text, env_.ReadFile(address_path));
  const nlohmann::json address = nlohmann::json::parse(text, nullptr, false);
  if (!address.is_object() || !address.contains("grpc") || !address["grpc"].is_string() ||
      !address.contains("http") || !address["http"].is_string()) {
    return Internal(fmt::format("{} is malformed", address_path));
  }
  grpc_address_ = address["grpc"].get<std::string>();
  http_address_ = address["http"].get<std::string>();
  return Status::Ok();
}

Status LocalFleet::Check() {
  for (Member& member : members_) {
    PIPEYARD_ASSIGN_OR_RETURN(const std::optional<ExitStatus> status,
                              member.process->Wait(Nanos(0)));
    if (status)
      return Internal(fmt::format("the {} ended ({}): {}", member.name, status->ToString(),
                                  EndOf(member.log_path)));
  }
  return Status::Ok();
}

std::string LocalFleet::EndOf(const std::string& log_path) {
  const Result<std::string> log = env_.ReadFile(log_path);
  if (!log.ok()) return log.status().message();
  std::string_view tail = *log;
  while (tail.ends_with('\n')) tail.remove_suffix(1);
  if (tail.size() > kLogTailBytes) tail.remove_prefix(tail.size() - kLogTailBytes);
  std::string line;
  for (const char c : tail) line += c == '\n' ? std::string(" | ") : std::string(1, c);
  return line;
}

void LocalFleet::Stop() {
  while (!members_.empty()) {
    Process& process = *members_.back().process;
    (void)process.Kill(SIGTERM);
    (void)process.Wait(kStopTimeout);
    members_.pop_back();  // kills what did not obey
  }
}

}  // namespace pipeyard::cli
