#include "controller/report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "base/units.h"
#include "base/utf8.h"

namespace pipeyard::report {
namespace {

// Estimates above this are "more than this": nobody plans by their digits.
constexpr uint32_t kMostNeeded = 1000;

std::string Signed(double value, std::string_view unit) {
  return (value < 0 ? "-" : "+") + FormatQuantity(std::fabs(value), unit);
}

// What one more of the tested units is called.
std::string_view NeededNoun(const v1::DiffRow& row) {
  if (row.reason() == "too-few-boots" || row.test().ends_with("/boots")) return "boot";
  return row.test() == "signed-rank" ? "block" : "repetition";
}

std::string ChangeReason(const v1::DiffRow& row) {
  const bool is_up = row.effect().value() > (row.effect().kind() == "ratio" ? 1 : 0);
  const std::string metric = row.metric().empty() ? "" : " " + Printable(row.metric());
  return fmt::format(": {}{}", is_up ? "higher" : "lower", metric);
}

bool IsOpen(const v1::DiffRow& row) { return row.verdict() == "inconclusive"; }

std::string Brackets(const v1::DiffRow& row) {
  std::string text;
  if (const std::string least = DetectsWords(row); !least.empty()) text = "detects " + least;
  if (const std::string needed = NeedsWords(row); !needed.empty()) {
    text += fmt::format("{}needs {}", text.empty() ? "" : ", ", needed);
  }
  return text.empty() ? "" : " (" + text + ")";
}

// Ranges in which every character takes one column of a terminal that is not set to East Asia's
// wide forms, and none reorders or joins its neighbours. Here rather than in wcwidth(3), which
// knows the locale of this process, not the terminal.
constexpr struct {
  char32_t first;
  char32_t last;
} kOneColumn[] = {
    {0x20, 0x7E},                                          // ASCII
    {0xA0, 0xAC},     {0xAE, 0x2FF},                       // Latin and IPA without the soft hyphen
    {0x370, 0x482},   {0x48A, 0x52F},                      // Greek, Cyrillic
    {0x1E00, 0x1FFF},                                      // more Latin and Greek
    {0x2010, 0x2027}, {0x2030, 0x205E},                    // dashes, quotes and the like
    {0x2070, 0x209C}, {0x20A0, 0x20C0}, {0x2100, 0x22FF},  // digits, currencies, arrows, operators
    {0x2500, 0x259F},                                      // lines and blocks
};

bool IsOneColumn(char32_t character) {
  return std::any_of(std::begin(kOneColumn), std::end(kOneColumn), [&](const auto& range) {
    return character >= range.first && character <= range.last;
  });
}

}  // namespace

std::string RatioWords(double ratio) {
  if (!std::isfinite(ratio)) return "n/a";
  if (ratio >= 10) return fmt::format("x{:.1f}", ratio);
  const double percent = (ratio - 1) * 100;
  // No "-0.0%".
  return fmt::format("{:+.1f}%", std::fabs(percent) < 0.05 ? 0.0 : percent);
}

std::string ChangeWords(std::optional<double> a, std::optional<double> b, std::string_view unit) {
  if (!a && !b) return "-";
  if (!a) return "new";
  if (!b) return "gone";
  if (*a == 0 && *b == 0) return "0.0%";
  if (*a == 0 || (*a < 0) != (*b < 0)) {
    if (*a > 0 && *b == 0) return "-100.0%";
    return fmt::format("n/a ({} abs)", Signed(*b - *a, unit));
  }
  return RatioWords(*b / *a);
}

std::string EffectWords(const v1::DiffRow& row) {
  if (row.verdict() == "inert") return "inert";
  if (!row.has_effect() || !row.effect().has_value()) return "-";
  if (row.effect().kind() == "ratio") return RatioWords(row.effect().value());
  return Signed(row.effect().value(), row.unit());
}

std::string IntervalWords(const v1::DiffRow& row) {
  const v1::Effect& effect = row.effect();
  if (!effect.has_value()) return "";
  if (!effect.has_ci95_low() || !effect.has_ci95_high()) return "[unbounded]";
  if (effect.kind() == "ratio") {
    return fmt::format("[{}, {}]", RatioWords(effect.ci95_low()), RatioWords(effect.ci95_high()));
  }
  return fmt::format("[{}, {}]", Signed(effect.ci95_low(), row.unit()),
                     Signed(effect.ci95_high(), row.unit()));
}

std::string ProbabilityWords(const v1::DiffRow& row) {
  if (!row.has_p()) return "-";
  if (row.p() < 0.0001) return "<0.0001";
  return fmt::format("{:.4f}", row.p());
}

std::string CountWords(const v1::DiffRow& row) {
  if (row.test() == "signed-rank" && row.a().n() == row.b().n() && row.a().n() > 0) {
    return Plural(row.a().n(), "block");
  }
  std::string text = fmt::format("{}+{}", row.a().n(), row.b().n());
  if (row.test().ends_with("/boots")) {
    text += fmt::format(" in {}+{} boots", row.a().boots(), row.b().boots());
  }
  return text;
}

std::string DetectsWords(const v1::DiffRow& row) {
  return row.has_mde() && (IsOpen(row) || row.verdict() == "unchanged") ? PercentWords(row.mde())
                                                                        : "";
}

std::string NeedsWords(const v1::DiffRow& row) {
  if (!IsOpen(row) || row.need_more() == 0) return "";
  const std::string noun = "more " + std::string(NeededNoun(row));
  const bool is_estimate = row.reason() != "too-few-boots";
  return (row.need_more() > kMostNeeded
              ? fmt::format("over 1,000 {}s", noun)
              : (is_estimate ? "~" : "") + Plural(row.need_more(), noun)) +
         (row.test() == "signed-rank" ? "" : " a side");
}

std::string BareVerdictWords(const v1::DiffRow& row) {
  const std::string& verdict = row.verdict();
  if (verdict == "missing") {
    const bool lacks_a = row.a().n() == 0;
    return lacks_a && row.b().n() == 0 ? "missing in both"
           : lacks_a                   ? "missing in A"
                                       : "missing in B";
  }
  std::string text = verdict;
  // The reason is the names of settings, to be read as they are written.
  if (verdict == "inert") return text + ": " + Printable(row.reason());
  if (!row.reason().empty()) {
    std::string reason = row.reason();
    for (char& c : reason) c = c == '-' ? ' ' : c;
    text += ": " + reason;
  } else if (verdict == "improved" || verdict == "regressed" || verdict == "changed") {
    text += ChangeReason(row);
  }
  return text;
}

std::string VerdictWords(const v1::DiffRow& row) { return BareVerdictWords(row) + Brackets(row); }

std::string ModelledWords(std::string_view modelled, std::string_view unit) {
  const bool is_time_effect = unit == "ns" || unit.ends_with("/s");
  if (modelled.empty() || !is_time_effect) return "";
  return fmt::format("modelled ({})", Printable(modelled));
}

Tone VerdictTone(const v1::DiffRow& row) {
  if (row.verdict() == "improved") return Tone::kGood;
  if (row.verdict() == "regressed") return Tone::kBad;
  if (row.verdict() == "inconclusive" || row.verdict() == "missing") return Tone::kUnsure;
  if (row.verdict() == "inert") return Tone::kQuiet;
  return Tone::kPlain;
}

std::string_view DirectionWords(v1::Direction better) {
  if (better == v1::DIRECTION_HIGHER) return "higher is better";
  if (better == v1::DIRECTION_LOWER) return "lower is better";
  return "neither direction is better";
}

std::string PercentWords(double fraction) {
  const double percent = fraction * 100;
  if (percent >= 1000) return ">1000%";
  if (percent > 0 && percent < 0.01) return "<0.01%";
  if (percent >= 99.95) return fmt::format("{:.0f}%", percent);
  return percent >= 0.95 || percent == 0 ? fmt::format("{:.3g}%", percent)
                                         : fmt::format("{:.2g}%", percent);
}

std::string UtcWords(int64_t utc_ns) {
  if (utc_ns <= 0) return "-";
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds(utc_ns)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string SpanWords(int64_t ns) {
  const int64_t seconds = ns / 1'000'000'000;
  if (seconds >= 86400) return fmt::format("{}d {:02}h", seconds / 86400, seconds / 3600 % 24);
  if (seconds >= 3600) return fmt::format("{}h {:02}m", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 100) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  return FormatQuantity(static_cast<double>(ns), "ns");
}

std::string Plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ShortId(std::string_view id) { return Printable(id.substr(0, 13)); }

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const auto [character, is_valid] = TakeCharacter(text);
    if (is_valid && IsOneColumn(CodePoint(character))) {
      printable += character;
    } else {
      printable += '?';
    }
  }
  return printable;
}

}  // namespace pipeyard::report
