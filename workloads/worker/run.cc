#include "workloads/worker/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/env.h"
#include "proto/settings/definition.h"
#include "proto/settings/parse.h"
#include "proto/settings/variant.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load.h"
#include "workloads/load/result_fields.h"
#include "workloads/numa/hotplug.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/topology.h"
#include "workloads/worker/run_command.h"

namespace pipeyard::worker {
namespace {

// "did you mean writers?", or nothing.
std::string Suggestion(std::string_view workload, std::string_view name) {
  std::vector<std::string_view> known;
  for (const settings::Definition& definition : settings::Definitions()) {
    if (settings::FindDefinition(workload, definition.name) != nullptr) {
      known.push_back(definition.name);
    }
  }
  const std::string_view nearest = settings::NearestName(name, known);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

Result<std::map<std::string, settings::Value>> ParseSettings(const HandRequest& hand) {
  std::map<std::string, settings::Value> values;
  for (const std::string& text : hand.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument(fmt::format("--set '{}': NAME=VALUE was meant", text));
    }
    const std::string name = text.substr(0, equals);
    const settings::Definition* definition = settings::FindDefinition(hand.workload, name);
    if (definition == nullptr) {
      return InvalidArgument(fmt::format("--set: unknown setting '{}' of workload {}{}", name,
                                         hand.workload, Suggestion(hand.workload, name)));
    }
    if (!settings::AppliesTo(*definition, hand.target)) {
      return InvalidArgument(
          fmt::format("--set: {} does not apply to target {}", name, hand.target));
    }
    Result<settings::Value> value = settings::ParseValue(*definition, text.substr(equals + 1));
    if (!value.ok()) return value.status().WithContext("--set " + name);
    values[name] = std::move(*value);
  }
  return values;
}

v1::WorkerResult ResultOf(const load::Judgement& judgement) {
  v1::WorkerResult result;
  load::FillJudgement(judgement, result);
  return result;
}

// The program inherits the placement of this process.
v1::WorkerResult RunPlacedCommand(const v1::WorkerRequest& request, settings::Variant variant) {
  if (!request.has_command()) {
    return ResultOf(load::Failed(
        "not_supported",
        "workload command is run by an agent only, for which its commands.d allows it"));
  }
  load::CommandedPlacement placement;
  v1::WorkerResult resolved;
  load::Judgement obtained = load::ObtainPlacement(variant, placement, resolved);
  v1::WorkerResult result =
      obtained.ok() ? RunCommand(request.command(), request.attempt_id()) : ResultOf(obtained);
  if (result.outcome() == v1::OUTCOME_OK) {
    load::FillJudgement(load::CheckPlacement(placement, numa::SystemNumaKernel()), result);
  }
  result.mutable_resolved()->MergeFrom(resolved.resolved());
  return result;
}

}  // namespace

Result<v1::WorkerRequest> ReadRequest(const std::string& path) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::string data, PosixEnv().ReadFile(path));
  v1::WorkerRequest request;
  if (!request.ParseFromString(data)) {
    return InvalidArgument(path + ": not a worker request (pipeyard.v1.WorkerRequest)");
  }
  if (request.attempt_id().empty()) return InvalidArgument(path + ": no attempt_id");
  if (!request.has_variant()) return InvalidArgument(path + ": no variant");
  return request;
}

Result<v1::WorkerRequest> MakeRequest(const HandRequest& hand) {
  if (settings::FindWorkload(hand.workload) == nullptr) {
    return InvalidArgument(fmt::format("--workload: unknown workload '{}'", hand.workload));
  }
  PIPEYARD_ASSIGN_OR_RETURN(const auto values, ParseSettings(hand));
  PIPEYARD_ASSIGN_OR_RETURN(const settings::Variant variant,
                            settings::MakeVariant(hand.workload, hand.target, values));
  v1::WorkerRequest request;
  request.set_attempt_id("by-hand");
  *request.mutable_variant() = settings::ToProto(variant);
  return request;
}

Result<v1::WorkerResult> RunRequest(const v1::WorkerRequest& request, MonotonicTime started) {
  PIPEYARD_ASSIGN_OR_RETURN(settings::Variant variant, settings::FromProto(request.variant()));
  if (variant.workload == "command") {
    v1::WorkerResult result = RunPlacedCommand(request, variant);
    result.set_attempt_id(request.attempt_id());
    result.set_elapsed_ns((SystemClock().Now() - started).count());
    return result;
  }
  // Without it (a container that forbids the socket) hotplug stays unnoticed here.
  const Result<std::unique_ptr<numa::HotplugListener>> hotplug = numa::HotplugListener::Open();
  load::Surroundings surroundings;
  if (hotplug.ok()) surroundings.hotplug = hotplug->get();
  surroundings.launcher = {"/proc/self/exe", "launch", "--parent", fmt::format("{}", ::getpid()),
                           "--program",      "--"};
  v1::WorkerResult result = load::RunWorkload(variant, surroundings);
  result.set_attempt_id(request.attempt_id());
  result.set_elapsed_ns((SystemClock().Now() - started).count());
  return result;
}

void TakePlacementOf(const v1::WorkerRequest& request) {
  Result<settings::Variant> variant = settings::FromProto(request.variant());
  const Result<numa::Topology> host = load::HostToPlaceOn();
  if (!variant.ok() || !host.ok()) return;
  load::CommandedPlacement placement;
  v1::WorkerResult unused;
  if (!load::ResolvePlacement(*host, numa::HostFiles(), *variant, placement, unused).ok()) return;
  static_cast<void>(load::TakePlacement(placement, numa::SystemNumaKernel()));
}

Status WriteResult(const std::string& path, const v1::WorkerResult& result) {
  return PosixEnv().WriteFileAtomic(path, result.SerializeAsString());
}

}  // namespace pipeyard::worker
