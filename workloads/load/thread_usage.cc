#include "workloads/load/thread_usage.h"

#include <sys/resource.h>

namespace pipeyard::load {
namespace {

int64_t NanosOf(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1'000;
}

}  // namespace

ThreadUsage& ThreadUsage::operator+=(const ThreadUsage& other) {
  voluntary_context_switches += other.voluntary_context_switches;
  involuntary_context_switches += other.involuntary_context_switches;
  minor_faults += other.minor_faults;
  major_faults += other.major_faults;
  user_time += other.user_time;
  system_time += other.system_time;
  return *this;
}

ThreadUsage& ThreadUsage::operator-=(const ThreadUsage& other) {
  voluntary_context_switches -= other.voluntary_context_switches;
  involuntary_context_switches -= other.involuntary_context_switches;
  minor_faults -= other.minor_faults;
  major_faults -= other.major_faults;
  user_time -= other.user_time;
  system_time -= other.system_time;
  return *this;
}

ThreadUsage ReadThreadUsage() {
  rusage usage = {};
  // Cannot fail for RUSAGE_THREAD and a valid address (getrusage(2)).
  static_cast<void>(::getrusage(RUSAGE_THREAD, &usage));
  return {usage.ru_nvcsw,  usage.ru_nivcsw,         usage.ru_minflt,
          usage.ru_majflt, NanosOf(usage.ru_utime), NanosOf(usage.ru_stime)};
}

Counts ToCounts(const ThreadUsage& usage) {
  return {{"voluntary_context_switches", "count", usage.voluntary_context_switches},
          {"involuntary_context_switches", "count", usage.involuntary_context_switches},
          {"minor_faults", "count", usage.minor_faults},
          {"major_faults", "count", usage.major_faults},
          {"user_time", "ns", usage.user_time},
          {"system_time", "ns", usage.system_time}};
}

void UsageWindow::Change(Phase phase) {
  last_ = phase;
  if (phase == Phase::kMeasure) {
    at_begin_ = ReadThreadUsage();
    is_open_ = true;
  } else if (is_open_) {
    usage_ = ReadThreadUsage();
    usage_ -= at_begin_;
    is_open_ = false;
  }
}

}  // namespace pipeyard::load
