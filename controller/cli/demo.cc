#include "controller/cli/demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/clock.h"
#include "base/process.h"
#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/local_fleet.h"
#include "controller/cli/submit.h"

namespace pipeyard::cli {
namespace {

constexpr int kMaxHosts = 16;
constexpr Nanos kAttachTimeout = Seconds(30);
constexpr Nanos kPollInterval = Milliseconds(50);

// Beside an installed program, else where this one was built from.
Result<std::string> QuickSweepsDir(Env& env) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string programs, ProgramDir());
  for (const std::string& folder : {programs + "/../share/pipeyard/sweeps/quick",
                                    std::string(PIPEYARD_SWEEPS_DIR) + "/quick"}) {
    if (env.Exists(folder)) return folder;
  }
  return NotFound(fmt::format("no ready sweeps in {}/quick", PIPEYARD_SWEEPS_DIR));
}

Result<std::vector<std::string>> QuickSweeps(Env& env, bool only_prealloc) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string folder, QuickSweepsDir(env));
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, env.ListDir(folder));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (!name.ends_with(".yaml") || (only_prealloc && name != "prealloc.yaml")) continue;
    paths.push_back(folder + "/" + name);
  }
  if (paths.empty()) return NotFound(fmt::format("no ready sweeps in {}", folder));
  return paths;
}

Status WaitForHosts(const Console& console, LocalFleet& fleet, ControlClient& client,
                    int num_hosts) {
  const MonotonicTime deadline = SystemClock().Now() + kAttachTimeout;
  for (;;) {
    PIPEYARD_ASSIGN_OR_RETURN(const v1::ListHostsResponse hosts, client.ListHosts());
    const auto connected =
        std::count_if(hosts.hosts().begin(), hosts.hosts().end(),
                      [](const v1::Host& host) { return host.state() == "connected"; });
    if (connected >= num_hosts) return Status::Ok();
    PIPEYARD_RETURN_IF_ERROR(fleet.Check());
    if (SystemClock().Now() > deadline)
      return DeadlineExceeded(
          fmt::format("{} of {} agents attached within 30 s", connected, num_hosts));
    if (console.signals.Wait(kPollInterval)) return Cancelled("interrupted");
  }
}

std::string NewStateDir() {
  std::string stamp = FormatUtc(SystemClock().UtcNow());
  std::replace(stamp.begin(), stamp.end(), ':', '-');
  return options::DefaultStateDir("demo-" + stamp.substr(0, 19), options::ProcessEnvironment());
}

// A folder that cannot be had is a wrong command, whatever errno calls it.
Status MakeStateDir(Env& env, const std::string& state_dir) {
  Status made = env.CreateDirs(state_dir + "/controller");
  if (made.ok() && ::access(state_dir.c_str(), W_OK | X_OK) != 0) {
    made = ErrnoStatus("write to " + state_dir, errno);
  }
  if (made.ok()) return made;
  return InvalidArgument(
      fmt::format("{}; name a folder that can be written with --state", made.message()));
}

// What a person does next with what the demo left.
void SayWhatIsKept(const Console& console, const std::string& state_dir) {
  const Result<std::string> programs = ProgramDir();
  console.Out(fmt::format(
      "\nStored: {0}/controller/store.db\n"
      "Again:  {1}pipeyard-controller --state {0}/controller &\n"
      "        pipeyard run list; pipeyard diff latest; pipeyard run show latest\n",
      state_dir, programs.ok() ? fmt::format("export PATH={}:$PATH\n        ", *programs) : ""));
}

// Why no host could run any cell of the sweep (a program that is not installed); empty where one
// can, and where that cannot be told: submitting says more.
std::string WhyNotHere(const Console& console, ControlClient& client, const std::string& path) {
  const Result<std::string> text = console.env.ReadFile(path);
  if (!text.ok()) return "";
  v1::PlanSweepRequest request;
  request.mutable_sweep()->set_file_name(std::filesystem::path(path).filename().string());
  request.mutable_sweep()->set_yaml(*text);
  const Result<v1::Plan> plan = client.PlanSweep(request);
  if (!plan.ok()) return "";
  std::string why;
  for (const v1::Plan::HostPlan& host : plan->hosts()) {
    if (host.cells() > 0) return "";
    if (host.not_applicable_size() > 0) why = host.not_applicable(0).reason();
  }
  return why;
}

}  // namespace

int RunDemo(const Console& console, const DemoOptions& demo) {
  const Result<std::vector<std::string>> sweeps = QuickSweeps(console.env, demo.quick);
  if (!sweeps.ok()) return console.Fail(sweeps.status());
  const std::string state_dir = demo.state_dir.empty() ? NewStateDir() : demo.state_dir;
  if (const Status made = MakeStateDir(console.env, state_dir); !made.ok())
    return console.Fail(made);
  console.Say(fmt::format("a controller and {} agents on loopback; everything is kept in {}",
                          demo.hosts, state_dir));
  Result<std::unique_ptr<LocalFleet>> started =
      LocalFleet::Start(console.env, state_dir, demo.hosts);
  if (!started.ok()) return console.Fail(started.status());
  LocalFleet& fleet = **started;
  Result<std::unique_ptr<ControlClient>> connected =
      ControlClient::Connect(fleet.grpc_address(), kAttachTimeout);
  if (!connected.ok()) return console.Fail(connected.status());
  ControlClient& client = **connected;
  const Status attached = WaitForHosts(console, fleet, client, demo.hosts);
  if (attached.code() == StatusCode::kCancelled) return kInterrupted;
  if (!attached.ok()) return console.Fail(attached);
  console.signals.OnSignal([&](int) { client.Cancel(); });

  int worst = kDone;
  for (const std::string& path : *sweeps) {
    console.Say(fmt::format("sweep {}", path));
    if (const std::string why = WhyNotHere(console, client, path); !why.empty()) {
      console.Say(fmt::format("not run, for nothing of it is applicable here: {}", why));
      continue;
    }
    int exit_status = kDone;
    const std::optional<v1::SubmitSweepResponse> submitted = Submit(
        console, client, {.path = path, .sets = {}, .labels = {}, .note = "demo"}, exit_status);
    if (submitted) exit_status = WatchToTheEnd(console, client, submitted->run_id());
    worst = std::max(worst, exit_status);
    if (exit_status == kInterrupted) break;
  }
  console.signals.StopCalling();
  fleet.Stop();
  SayWhatIsKept(console, state_dir);
  return worst;
}

int Demo(const Console& console, const options::Parsed& parsed) {
  DemoOptions demo{.quick = parsed.Flag("quick"), .hosts = 0, .state_dir = parsed.Get("state")};
  const std::string& text = parsed.Get("hosts");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), demo.hosts);
  if (error != std::errc() || end != text.data() + text.size() || demo.hosts < 1 ||
      demo.hosts > kMaxHosts) {
    console.Say(fmt::format("--hosts takes a number from 1 to {}, not '{}'", kMaxHosts, text));
    return kUsage;
  }
  return RunDemo(console, demo);
}

}  // namespace pipeyard::cli
