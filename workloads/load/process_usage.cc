#include "workloads/load/process_usage.h"

#include <sys/resource.h>

namespace pipeyard::load {
namespace {

int64_t NanosOf(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1'000;
}

}  // namespace

Counts ReadProcessUsage() {
  rusage usage = {};
  // Cannot fail for RUSAGE_SELF and a valid address (getrusage(2)).
  static_cast<void>(::getrusage(RUSAGE_SELF, &usage));
  return {{"voluntary_context_switches", "count", usage.ru_nvcsw},
          {"involuntary_context_switches", "count", usage.ru_nivcsw},
          {"minor_faults", "count", usage.ru_minflt},
          {"major_faults", "count", usage.ru_majflt},
          {"user_time", "ns", NanosOf(usage.ru_utime)},
          {"system_time", "ns", NanosOf(usage.ru_stime)}};
}

}  // namespace pipeyard::load
