// Ids of runs, attempts, agents and stores: UUIDv7 (RFC 9562, section 5.7), lower-case text with
// hyphens.
//
// The leading 48 bits are UTC milliseconds, so ids sort by creation. An IdSource never returns the
// same or a smaller id twice in one process even when the wall clock steps back.
//
// Thread safety: IdSource is thread-safe; the functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace pipeyard {

class IdSource {
 public:
  // `clock` is borrowed and outlives this. Randomness is from getrandom(2).
  explicit IdSource(const Clock& clock) : clock_(clock), deterministic_(false), state_(0) {}
  // Deterministic: the random bits follow from `seed` (SplitMix64). For tests and simulation only.
  IdSource(const Clock& clock, uint64_t seed) : clock_(clock), deterministic_(true), state_(seed) {}

  std::string Next() EXCLUDES(mutex_);

 private:
  uint64_t RandomBits() REQUIRES(mutex_);

  const Clock& clock_;
  const bool deterministic_;
  Mutex mutex_;
  uint64_t state_ GUARDED_BY(mutex_);
  int64_t last_millis_ GUARDED_BY(mutex_) = -1;
  uint32_t sequence_ GUARDED_BY(mutex_) = 0;
};

// True for 36 characters of 8-4-4-4-12 lower-case hex digits, of any version.
bool IsUuid(std::string_view text);

// The kernel's boot id (/proc/sys/kernel/random/boot_id). Errors: kUnavailable where it cannot be
// read.
Result<std::string> ReadBootId();

}  // namespace pipeyard
