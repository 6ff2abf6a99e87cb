#include "agent/runner/assign_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/runner/text.h"
#include "base/ids.h"
#include "proto/settings/command_parameters.h"
#include "proto/settings/definition.h"
#include "proto/settings/variant.h"

namespace pipeyard::runner {
namespace {

template <typename Range>
bool Contains(const Range& range, std::string_view word) {
  return std::find(range.begin(), range.end(), word) != range.end();
}

Status CheckCommand(const settings::Variant& variant, const commands::CommandFolder& commands) {
  PIPEYARD_ASSIGN_OR_RETURN(const commands::Command* command,
                            commands.Find(variant.Text("command")));
  const std::string name = "command " + command->name;
  PIPEYARD_RETURN_IF_ERROR(settings::CheckCommandParameters(
                               command->parameters, settings::GivenCommandParameters(variant))
                               .WithContext(name));
  if (!command->read.empty()) return Status::Ok();
  return InvalidArgument(name + " has no read rules, so nothing can be measured by it");
}

}  // namespace

std::vector<std::string> Capabilities() {
  std::vector<std::string> pairs;
  for (const settings::WorkloadDefinition& workload : settings::Workloads()) {
    if (!workload.is_supported) continue;
    for (const std::string_view target : workload.targets) {
      pairs.push_back(fmt::format("{}:{}", workload.name, target));
    }
  }
  return pairs;
}

Status CheckAssign(const v1::Assign& assign, const commands::CommandFolder* commands) {
  if (!IsUuid(assign.attempt_id())) return InvalidArgument("attempt_id is no UUID");
  if (!IsUuid(assign.store_id())) return InvalidArgument("store_id is no UUID");
  if (assign.trial_name().size() > kMaxTrialNameBytes ||
      Printable(assign.trial_name(), kMaxTrialNameBytes) != assign.trial_name()) {
    return InvalidArgument("trial_name is too long or holds control characters");
  }
  const Nanos timeout(assign.trial_timeout_ns());
  if (timeout <= Nanos(0) || timeout > kMaxTrialTimeout) {
    return InvalidArgument(fmt::format("trial_timeout_ns = {} is not within 1 .. {}",
                                       timeout.count(), kMaxTrialTimeout.count()));
  }
  Result<settings::Variant> variant = settings::FromProto(assign.variant());
  if (!variant.ok()) return variant.status().WithContext("variant");
  if (!Contains(Capabilities(), variant->workload + ":" + variant->target)) {
    return Unimplemented(fmt::format("this agent does not run workload {} on target {}",
                                     variant->workload, variant->target));
  }
  PIPEYARD_RETURN_IF_ERROR(settings::CheckSupported(*variant));
  if (variant->workload != "command") return Status::Ok();
  return CheckCommand(*variant, commands == nullptr ? commands::CommandFolder() : *commands);
}

}  // namespace pipeyard::runner
