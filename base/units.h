// Quantities and how people write them: durations, sizes, percentages.
//
// Grammar (the one of sweep files, flags and config files): a decimal number directly followed by a
// unit.
//   durations  ns us ms s m h d          "200ms", "1.5s"; a bare 0 is legal
//   sizes      B KiB MiB GiB TiB kB MB GB TB   "64KiB", "1MiB"; a bare 0 is legal
//   percent    %                          "2%"; a bare 0 is legal
// A value that is not a whole number of base units (ns, bytes) is an error, as is a negative or
// overflowing one.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace pipeyard {

using Nanos = std::chrono::nanoseconds;

constexpr Nanos Microseconds(int64_t n) { return std::chrono::microseconds(n); }
constexpr Nanos Milliseconds(int64_t n) { return std::chrono::milliseconds(n); }
constexpr Nanos Seconds(int64_t n) { return std::chrono::seconds(n); }
constexpr Nanos Minutes(int64_t n) { return std::chrono::minutes(n); }

// Errors: kInvalidArgument, with a message that names what was meant ("a duration with a unit, such
// as 10s or 200ms").
Result<Nanos> ParseDuration(std::string_view text);
Result<int64_t> ParseBytes(std::string_view text);
// "2%" -> 0.02.
Result<double> ParsePercent(std::string_view text);

// Shortest exact form that parses back to the same value: "1.5s", "200ms", "64KiB", "0".
std::string FormatDuration(Nanos duration);
std::string FormatBytes(int64_t bytes);

// For people, not for parsing back: three significant digits with an SI prefix, "4.71 GB/s" for
// (4.71e9, "B/s"), "55.8 us" for (55786, "ns"); counts as "12.3 k". ASCII only.
std::string FormatQuantity(double value, std::string_view unit);

}  // namespace pipeyard
