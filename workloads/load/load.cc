#include "workloads/load/load.h"

#include <string>

#include "workloads/load/bandwidth.h"
#include "workloads/load/bulk.h"
#include "workloads/load/churn.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/fault.h"
#include "workloads/load/judgement.h"
#include "workloads/load/messaging.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/transfer.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::load {
namespace {

Judgement Dispatch(const settings::Variant& variant, const Surroundings& surroundings,
                   v1::WorkerResult& result) {
  const Status supported = settings::CheckSupported(variant);
  if (!supported.ok()) return Failed("not_supported", supported.message());
  if (variant.workload == "bandwidth") return RunBandwidth(variant, surroundings, result);
  if (variant.workload == "bulk") return RunBulk(variant, surroundings, result);
  if (variant.workload == "churn") return RunChurn(variant, surroundings, result);
  if (variant.workload == "fault") return RunFault(variant, surroundings, result);
  if (variant.workload == "messaging") return RunMessaging(variant, surroundings, result);
  if (variant.workload == "transfer") return RunTransfer(variant, surroundings, result);
  return Failed("not_supported", "workload " + variant.workload + " is not supported yet");
}

// Under the placement that the variant commands, asked for again at the end.
Judgement Attempt(settings::Variant variant, Surroundings surroundings, v1::WorkerResult& result) {
  CommandedPlacement& placement = surroundings.placement;
  Judgement judged = ObtainPlacement(variant, placement, result);
  if (!judged.ok()) return judged;
  judged = Dispatch(variant, surroundings, result);
  if (!judged.ok()) return judged;
  judged = CheckUserMemory(placement, result);
  return judged.ok() ? CheckPlacement(placement, numa::SystemNumaKernel()) : judged;
}

}  // namespace

v1::WorkerResult RunWorkload(const settings::Variant& variant, const Surroundings& surroundings) {
  v1::WorkerResult result;
  FillJudgement(Attempt(variant, surroundings, result), result);
  return result;
}

}  // namespace pipeyard::load
