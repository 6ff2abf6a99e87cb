#include "agent/daemon/agent_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "agent/host/facts.h"
#include "agent/paths.h"
#include "proto/session/messages.h"

namespace pipeyard::agent {
namespace {

Result<Nanos> PositiveDuration(const options::Parsed& parsed, const std::string& name) {
  const Result<Nanos> value = ParseDuration(parsed.Get(name));
  if (!value.ok()) return value.status().WithContext("--" + name);
  if (*value <= Nanos(0)) {
    return InvalidArgument(fmt::format("--{} {}: more than 0 was meant", name, parsed.Get(name)));
  }
  return *value;
}

// Whether the host exists is the dialer's business, and it may come up later.
Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string_view text(address);
  int port = 0;
  const std::string_view port_text =
      colon == std::string::npos ? std::string_view() : text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  const bool is_port = !port_text.empty() && error == std::errc() &&
                       end == port_text.data() + port_text.size() && port > 0 && port <= 65535;
  if (is_port && colon > 0) return Status::Ok();
  return InvalidArgument(
      fmt::format("--controller {}: HOST:PORT was meant, such as 127.0.0.1:7420", address));
}

Result<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoStatus(fmt::format("find {}", path), error.value());
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

options::Program Description(const options::Environment& environment) {
  return {.name = "pipeyard-agent",
          .help = "Runs trials on this machine for a pipeyard-controller, one at a time",
          .footer =
              "Exit status: 0 stopped by a signal, 1 it cannot run here, 2 the command line or the "
              "configuration file is wrong, 4 the controller refused this agent for good.",
          .options =
              {
                  {.name = "state",
                   .value_name = "DIR",
                   .help = "identity and unacknowledged results",
                   .default_value = options::DefaultStateDir("agent", environment)},
                  {.name = "controller",
                   .value_name = "HOST:PORT",
                   .help = "the controller to dial",
                   .default_value = "127.0.0.1:7420"},
                  {.name = "name",
                   .value_name = "NAME",
                   .help = "shown for this host; unique at the controller",
                   .default_value = host::DefaultHostName()},
                  {.name = "worker",
                   .value_name = "FILE",
                   .help = "pipeyard-worker; the one beside this program where not given"},
                  {.name = "commands",
                   .value_name = "DIR",
                   .help = "a file NAME.yaml in it allows the command NAME; commands.d of the "
                           "state folder where not given"},
                  {.name = "trial-lock",
                   .value_name = "FILE",
                   .help = "held during a trial; shared by all agents of the machine",
                   .default_value = kTrialLockPath},
                  {.name = "trial-lock-timeout",
                   .value_name = "TIME",
                   .help = "an attempt that waits longer for it is void",
                   .default_value = "1h"},
                  {.name = "min-free",
                   .value_name = "SIZE",
                   .help = "take no trial while the state folder's disk has less room",
                   .default_value = "64MiB"},
                  {.name = "welcome-timeout",
                   .value_name = "TIME",
                   .help = "how long a controller may take to answer",
                   .default_value = "15s"},
                  {.name = "backoff-max",
                   .value_name = "TIME",
                   .help = "longest pause between two dials",
                   .default_value = "10s"},
              },
          .commands = {}};
}

Result<AgentFlags> ReadFlags(const options::Parsed& parsed) {
  AgentFlags flags;
  if (parsed.Get("state").empty()) return InvalidArgument("--state: a folder was meant");
  PIPEYARD_ASSIGN_OR_RETURN(flags.state_folder, AbsolutePath(parsed.Get("state")));
  flags.controller = parsed.Get("controller");
  PIPEYARD_RETURN_IF_ERROR(CheckAddress(flags.controller));
  flags.name = parsed.Get("name");
  if (!session::IsHostName(flags.name)) {
    return InvalidArgument(
        fmt::format("--name '{}': letters, digits, '.', '_' and '-' were meant, at most {} of them",
                    flags.name, session::kMaxHostNameBytes));
  }
  if (parsed.Has("worker")) {
    PIPEYARD_ASSIGN_OR_RETURN(flags.worker_program, AbsolutePath(parsed.Get("worker")));
  }
  flags.has_commands_folder = parsed.Has("commands");
  if (flags.has_commands_folder && parsed.Get("commands").empty()) {
    return InvalidArgument("--commands: a folder was meant");
  }
  PIPEYARD_ASSIGN_OR_RETURN(
      flags.commands_folder,
      AbsolutePath(parsed.Has("commands") ? parsed.Get("commands")
                                          : AgentPaths(flags.state_folder).Commands()));
  PIPEYARD_ASSIGN_OR_RETURN(flags.trial_lock_path, AbsolutePath(parsed.Get("trial-lock")));
  PIPEYARD_ASSIGN_OR_RETURN(flags.trial_lock_timeout,
                            PositiveDuration(parsed, "trial-lock-timeout"));
  const Result<int64_t> min_free = ParseBytes(parsed.Get("min-free"));
  if (!min_free.ok()) return min_free.status().WithContext("--min-free");
  flags.min_free_bytes = static_cast<uint64_t>(*min_free);
  PIPEYARD_ASSIGN_OR_RETURN(flags.welcome_timeout, PositiveDuration(parsed, "welcome-timeout"));
  PIPEYARD_ASSIGN_OR_RETURN(flags.backoff_max, PositiveDuration(parsed, "backoff-max"));
  return flags;
}

}  // namespace pipeyard::agent
