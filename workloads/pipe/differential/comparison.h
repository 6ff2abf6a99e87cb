// Comparison: many random programs on the kernel and on a subject; the first that shows a
// difference is shrunk and told.
//
// Thread safety: thread-compatible.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "workloads/pipe/differential/generator.h"
#include "workloads/pipe/differential/pipe_system.h"
#include "workloads/pipe/differential/run_settings.h"
#include "workloads/pipe/differential/sequential_run.h"

namespace pipeyard::pipe::differential {

// What is compared with the kernel, with all that belongs to it.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual PipeSystem& system() = 0;
  // Whether everything went back once all files are closed.
  virtual Status CheckAtRest() = 0;
};

// Makes a fresh subject; the settings say of what kind.
using SubjectMaker = std::function<Result<std::unique_ptr<Subject>>(const RunSettings&)>;

// The engine. Where the user's account with the kernel counts, both sides hold pipes beside those
// of the programs, up to near the soft limit, so that programs reach it.
Result<std::unique_ptr<Subject>> MakeEngineSubject(const RunSettings& settings);

struct ComparisonReport {
  uint64_t num_programs = 0;
  uint64_t num_operations = 0;  // those that were not passed over
  // Empty where all agreed. Else what differed and the smallest program found, ready to be
  // replayed.
  std::string difference;
  size_t num_shrunk = 0;  // operations of that program
};

// Programs until `num_operations` were compared or one differs. `seed` decides everything.
ComparisonReport Compare(const RunSettings& settings, const SubjectMaker& make_subject,
                         uint64_t seed, uint64_t num_operations);

// One program. Empty: all agreed.
std::string Replay(const Program& program, const SubjectMaker& make_subject);

}  // namespace pipeyard::pipe::differential
