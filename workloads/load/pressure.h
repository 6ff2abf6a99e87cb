// Pressure: memory pressure by another program, stress-ng, while a load runs: `pressure` of
// transfer.
//
//   stress-vm-50   --vm 2 --vm-bytes 50% --vm-keep         how the published figures were made
//   stress-vm-80   --vm 4 --vm-bytes 80% --vm-method all   how pipe_bench was merged
//
// The percentages are of the available memory, for all its processes together. Source:
// kernel-mechanisms.md E3.
//
// It stays in the process group of its owner: who kills the group ends it, too.
// Thread safety: confined to the owner's thread; started while the process has one thread.
// Ownership: ends the program at destruction.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/process.h"
#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

class Pressure {
 public:
  // For how long it presses before the load begins (pipe_bench's second).
  static constexpr Nanos kLead = Seconds(1);

  // Starts what `preset` names and waits for kLead; "none" starts nothing. `search_path` is where
  // the program is looked for (PATH); the launcher of `surroundings` stands before it, and its
  // placement is the load's alone. Says in `result` what was run.
  // not_applicable/program_missing names the package; void/pressure_ended: it ended at once.
  static Judgement Start(std::string_view preset, const std::string& search_path,
                         const Surroundings& surroundings, std::unique_ptr<Pressure>& pressure,
                         v1::WorkerResult& result);

  Pressure(const Pressure&) = delete;
  Pressure& operator=(const Pressure&) = delete;
  ~Pressure();

  // After the load: void/pressure_ended where it did not last as long. Ends it.
  Judgement Stop();

 private:
  explicit Pressure(std::string command) : command_(std::move(command)) {}

  Judgement CheckAlive(Nanos patience);
  void End();

  const std::string command_;  // for texts
  std::unique_ptr<Process> process_;
};

}  // namespace pipeyard::load
