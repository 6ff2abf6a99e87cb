// SequentialRun: applies one operation after the other to two sides and compares all that a caller
// can see: values, errno, SIGPIPE, bytes, then the readiness of every open file, the bytes queued
// and the capacity of every pipe.
//
// One actor: a call that would wait for ever is passed over. Whether it would is judged from what
// the reference said so far, never from what is being judged.
// Thread safety: thread-compatible. Ownership: borrows both sides.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/pipe/differential/file_table.h"
#include "workloads/pipe/differential/pipe_system.h"

namespace pipeyard::pipe::differential {

// Where the sides differ for the first time.
struct Divergence {
  size_t operation = 0;  // index in the program
  std::string text;      // what, on which side
};

struct CheckOptions {
  // Also compares poll(2)'s masks. A pipe that was ever polled wakes more than one that never was,
  // so some sequences must go without.
  bool has_polls = true;
  // Everything is compared after every n-th operation, and after each one that changes more than
  // bytes or that did less than it was asked for.
  uint32_t interval = 4;
  uint32_t page_bytes = 4096;
  // Off where the subject wakes writers more often than the kernel, by its settings.
  bool has_write_watches = true;
};

class SequentialRun {
 public:
  SequentialRun(PipeSystem& reference, PipeSystem& subject, const CheckOptions& options);

  // Both sides must hold no files; they hold none afterwards.
  std::optional<Divergence> Run(std::span<const Operation> operations);
  // Those that were not passed over, over all runs.
  uint64_t num_applied() const { return num_applied_; }

 private:
  // What is known of a pipe from the reference's answers.
  struct PipeFacts {
    uint64_t written = 0;    // bytes, ever
    uint64_t max_slots = 0;  // no more than these are in use
  };

  bool IsApplicable(const Operation& operation);
  bool WouldWait(const Operation& operation);
  // Fills what_ where they differ.
  void Apply(const Operation& operation);
  void ApplyWrite(const Operation& operation);
  void ApplyRead(const Operation& operation);
  void ApplyFlags(const Operation& operation);
  void ApplyPoll(const Operation& operation);
  void CheckEverything();
  // Reads what is left, then counts how many pages fit.
  void CheckRemains();
  void Compare(const char* what, Outcome reference, Outcome subject);
  PipeFacts& FactsOf(int file) { return facts_[static_cast<size_t>(table_.file(file).pipe)]; }

  PipeSystem& reference_;
  PipeSystem& subject_;
  const CheckOptions options_;
  FileTable table_;
  std::vector<PipeFacts> facts_;  // by pipe
  std::vector<char> reference_bytes_;
  std::vector<char> subject_bytes_;
  bool must_check_ = false;
  uint64_t num_applied_ = 0;
  std::string what_;
};

}  // namespace pipeyard::pipe::differential
