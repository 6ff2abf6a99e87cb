#include "base/clock.h"

#include <fmt/format.h>

#include <ctime>

namespace pipeyard {
namespace {

class PosixClock final : public Clock {
 public:
  MonotonicTime Now() const override { return Read(CLOCK_MONOTONIC); }
  UtcTime UtcNow() const override { return Read(CLOCK_REALTIME); }

 private:
  static Nanos Read(clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return Seconds(now.tv_sec) + Nanos(now.tv_nsec);
  }
};

}  // namespace

const Clock& SystemClock() {
  // Never destroyed: destructors of static objects may still use it.
  static const PosixClock* const clock = new PosixClock;
  return *clock;
}

std::string FormatUtc(UtcTime time) {
  int64_t seconds = time.count() / 1'000'000'000;
  int64_t millis = (time.count() % 1'000'000'000) / 1'000'000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  const time_t when = seconds;
  tm parts{};
  if (::gmtime_r(&when, &parts) == nullptr) return fmt::format("{}ns", time.count());
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis);
}

}  // namespace pipeyard
