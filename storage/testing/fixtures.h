// Sample records and a temporary folder for tests of, and over, the store.
//
// Thread safety: Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/store.h"

namespace pipeyard::storage {

// A folder of its own below the system's temporary folder, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string StorePath() const { return path_ + "/store.db"; }

 private:
  std::string path_;
};

// A UUID that ends in `number`: "00000000-0000-7000-8000-00000000002a" for 42.
std::string SampleId(uint64_t number);

// Host `number` with one node; its id is SampleId(number).
HostRecord SampleHost(uint64_t number);

// Run `number` (id SampleId(number), request "request-NUMBER") of sweep "prealloc" on
// hosts 1..num_hosts, with variants of two page caches and `num_trials` trials a cell.
RunRecord SampleRun(uint64_t number, uint32_t num_hosts = 1, uint32_t num_trials = 2);

// Trial of the first host's first variant.
TrialKey SampleTrial(uint64_t run, uint32_t trial_index = 1);
AttemptRecord SampleAttempt(uint64_t number, uint32_t attempt_number = 1);

// Frame `sequence` with some of everything; the names in it differ between sequences.
v1::Frame SampleFrame(uint64_t attempt, uint64_t sequence, bool is_final);

}  // namespace pipeyard::storage
