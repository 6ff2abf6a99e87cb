// What the kernel counts about one worker, thread or process: context switches, page faults, CPU
// time.
//
// Thread safety: ReadThreadUsage() reads the calling thread's; values.
#pragma once

#include <cstdint>

#include "workloads/load/counts.h"
#include "workloads/load/phase.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {

// SHARED. Since the thread's start, or a difference of two readings.
struct ThreadUsage {
  int64_t voluntary_context_switches;
  int64_t involuntary_context_switches;
  int64_t minor_faults;
  int64_t major_faults;
  int64_t user_time;    // ns
  int64_t system_time;  // ns

  ThreadUsage& operator+=(const ThreadUsage& other);
  ThreadUsage& operator-=(const ThreadUsage& other);
};
PIPEYARD_CHECK_SHARED(ThreadUsage);

// getrusage(RUSAGE_THREAD).
ThreadUsage ReadThreadUsage();

// Named and with units, as results have them.
Counts ToCounts(const ThreadUsage& usage);

// A worker's usage between the operations at which it saw the window open and close.
class UsageWindow {
 public:
  // `usage` gets the difference; all zero until then. Borrowed.
  explicit UsageWindow(ThreadUsage& usage) : usage_(usage) {}

  // Called after each operation; costs a comparison.
  void See(Phase phase) {
    if (phase != last_) [[unlikely]]
      Change(phase);
  }

 private:
  void Change(Phase phase);

  ThreadUsage& usage_;
  Phase last_ = Phase::kSetUp;
  bool is_open_ = false;
  ThreadUsage at_begin_ = {};
};

}  // namespace pipeyard::load
