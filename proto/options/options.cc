#include "proto/options/options.h"

#include <cstdio>
#include <cstdlib>

namespace pipeyard::options {

const std::string& Parsed::Get(const std::string& name) const {
  static const std::string kNone;
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? kNone : found->second.back();
}

std::vector<std::string> Parsed::GetAll(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

int Finish(const ParseResult& result) {
  std::fwrite(result.out.data(), 1, result.out.size(), stdout);
  std::fflush(stdout);
  std::fwrite(result.err.data(), 1, result.err.size(), stderr);
  return result.exit_status.value_or(0);
}

std::string Version() { return PIPEYARD_VERSION; }

std::string DefaultStateDir(const std::string& leaf, const Environment& environment) {
  const std::string state_home = environment("XDG_STATE_HOME").value_or("");
  if (!state_home.empty()) return state_home + "/pipeyard/" + leaf;
  const std::string home = environment("HOME").value_or("");
  if (!home.empty()) return home + "/.local/state/pipeyard/" + leaf;
  return "/var/lib/pipeyard/" + leaf;
}

}  // namespace pipeyard::options
