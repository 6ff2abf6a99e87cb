#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace pipeyard {
namespace {

struct Unit {
  std::string_view name;
  int64_t base;
};

// Largest first, so that formatting takes the first that divides.
constexpr std::array<Unit, 7> kDurationUnits{{{"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr std::array<Unit, 9> kByteUnits{{{"TiB", int64_t{1} << 40},
                                          {"GiB", int64_t{1} << 30},
                                          {"MiB", int64_t{1} << 20},
                                          {"KiB", int64_t{1} << 10},
                                          {"TB", 1'000'000'000'000},
                                          {"GB", 1'000'000'000},
                                          {"MB", 1'000'000},
                                          {"kB", 1'000},
                                          {"B", 1}}};

// A non-negative decimal number as digits and a power of ten, so that "1.5s" is exact.
struct Decimal {
  int64_t digits = 0;
  int fraction_digits = 0;
  std::string_view unit;
};

std::optional<Decimal> SplitDecimal(std::string_view text) {
  Decimal decimal;
  size_t at = 0;
  bool has_digit = false;
  bool has_point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !has_point && has_digit) {
      has_point = true;
    } else if (c >= '0' && c <= '9') {
      has_digit = true;
      if (__builtin_mul_overflow(decimal.digits, 10, &decimal.digits) ||
          __builtin_add_overflow(decimal.digits, c - '0', &decimal.digits)) {
        return std::nullopt;
      }
      if (has_point) ++decimal.fraction_digits;
    } else {
      break;
    }
  }
  if (!has_digit || (has_point && decimal.fraction_digits == 0)) return std::nullopt;
  decimal.unit = text.substr(at);
  return decimal;
}

template <size_t N>
Result<int64_t> ParseWithUnit(std::string_view text, const std::array<Unit, N>& units,
                              std::string_view meant) {
  const std::optional<Decimal> decimal = SplitDecimal(text);
  if (!decimal)
    return InvalidArgument(fmt::format("'{}' is no number with a unit; {} was meant", text, meant));
  if (decimal->unit.empty()) {
    if (decimal->digits == 0) return int64_t{0};
    return InvalidArgument(fmt::format("'{}' lacks its unit; {} was meant", text, meant));
  }
  for (const Unit& unit : units) {
    if (unit.name != decimal->unit) continue;
    __int128 value = static_cast<__int128>(decimal->digits) * unit.base;
    for (int i = 0; i < decimal->fraction_digits; ++i) {
      if (value % 10 != 0)
        return InvalidArgument(fmt::format("'{}' is no whole number of base units", text));
      value /= 10;
    }
    if (value > INT64_MAX) return InvalidArgument(fmt::format("'{}' is too large", text));
    return static_cast<int64_t>(value);
  }
  return InvalidArgument(
      fmt::format("'{}' has the unknown unit '{}'; {} was meant", text, decimal->unit, meant));
}

template <size_t N>
std::string FormatWithUnit(int64_t value, const std::array<Unit, N>& units) {
  if (value == 0) return "0";
  for (const Unit& unit : units) {
    if (value % unit.base == 0) return fmt::format("{}{}", value / unit.base, unit.name);
  }
  return fmt::format("{}{}", value, units.back().name);
}

}  // namespace

Result<Nanos> ParseDuration(std::string_view text) {
  PIPEYARD_ASSIGN_OR_RETURN(
      const int64_t ns,
      ParseWithUnit(text, kDurationUnits, "a duration with a unit, such as 10s or 200ms"));
  return Nanos(ns);
}

Result<int64_t> ParseBytes(std::string_view text) {
  return ParseWithUnit(text, kByteUnits, "a size with a unit, such as 64KiB or 1MiB");
}

Result<double> ParsePercent(std::string_view text) {
  const std::optional<Decimal> decimal = SplitDecimal(text);
  if (decimal && decimal->unit.empty() && decimal->digits == 0) return 0.0;
  if (!decimal || decimal->unit != "%") {
    return InvalidArgument(fmt::format("'{}' is no percentage; one such as 2% was meant", text));
  }
  return static_cast<double>(decimal->digits) / std::pow(10.0, decimal->fraction_digits + 2);
}

std::string FormatDuration(Nanos duration) {
  return FormatWithUnit(duration.count(), kDurationUnits);
}

std::string FormatBytes(int64_t bytes) { return FormatWithUnit(bytes, kByteUnits); }

std::string FormatQuantity(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "n/a";
  // Times shown from ns upwards in their own units, everything else with SI prefixes.
  std::string_view base = unit;
  double scaled = value;
  std::string_view prefix;
  if (unit == "ns") {
    constexpr std::array<std::string_view, 4> kNames{"ns", "us", "ms", "s"};
    size_t step = 0;
    while (step + 1 < kNames.size() && std::fabs(scaled) >= 999.5) {
      scaled /= 1000;
      ++step;
    }
    base = kNames[step];
  } else {
    constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
    size_t step = 0;
    while (step + 1 < kPrefixes.size() && std::fabs(scaled) >= 999.5) {
      scaled /= 1000;
      ++step;
    }
    prefix = kPrefixes[step];
    if (unit == "count") base = "";
    // "4.13 M/s", not "4.13 M1/s".
    if (unit.starts_with("1/") && !prefix.empty()) base = unit.substr(1);
  }
  const double magnitude = std::fabs(scaled);
  const int decimals = scaled == std::floor(scaled) && prefix.empty() && magnitude < 999.5 ? 0
                       : magnitude >= 99.95                                                ? 0
                       : magnitude >= 9.995                                                ? 1
                                                                                           : 2;
  std::string text = fmt::format("{:.{}f}", scaled, decimals);
  if (!prefix.empty() || !base.empty()) text += fmt::format(" {}{}", prefix, base);
  return text;
}

}  // namespace pipeyard
