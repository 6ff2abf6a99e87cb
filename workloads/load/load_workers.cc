#include "workloads/load/load_workers.h"

#include "workloads/load/load_processes.h"
#include "workloads/load/load_threads.h"

namespace pipeyard::load {

WorkerKind WorkerKindOf(std::string_view text) {
  return text == "processes" ? WorkerKind::kProcesses : WorkerKind::kThreads;
}

Judgement JudgeStart(WorkerKind kind, const Status& started) {
  if (started.ok()) return {};
  return Failed(kind == WorkerKind::kProcesses ? "no_process" : "no_thread", started.message());
}

std::unique_ptr<LoadWorkers> LoadWorkers::Make(WorkerKind kind) {
  if (kind == WorkerKind::kProcesses) return std::make_unique<LoadProcesses>();
  return std::make_unique<LoadThreads>();
}

}  // namespace pipeyard::load
