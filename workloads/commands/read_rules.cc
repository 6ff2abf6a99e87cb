#include "workloads/commands/read_rules.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "workloads/commands/document_path.h"
#include "workloads/commands/metric_units.h"

namespace pipeyard::commands {
namespace {

// Beyond it a line is no line of a report; bounds the time that matching takes.
constexpr size_t kMaxLineBytes = size_t{64} << 10;
constexpr size_t kNumCaptures = 2;  // the whole match and the one capture

// Owns a compiled expression.
class Regex {
 public:
  explicit Regex(const std::string& pattern)
      : error_(::regcomp(&compiled_, pattern.c_str(), REG_EXTENDED)) {}
  ~Regex() {
    if (error_ == 0) ::regfree(&compiled_);
  }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  bool ok() const { return error_ == 0; }
  size_t num_captures() const { return compiled_.re_nsub; }
  std::string ErrorText() const {
    std::array<char, 200> text{};
    ::regerror(error_, &compiled_, text.data(), text.size());
    return text.data();
  }
  // The capture of the first match in `line`; nullopt where there is none.
  std::optional<std::string> Match(const std::string& line) const {
    std::array<regmatch_t, kNumCaptures> matches{};
    if (::regexec(&compiled_, line.c_str(), matches.size(), matches.data(), 0) != 0) {
      return std::nullopt;
    }
    if (matches[1].rm_so < 0) return std::string();
    return line.substr(static_cast<size_t>(matches[1].rm_so),
                       static_cast<size_t>(matches[1].rm_eo - matches[1].rm_so));
  }

 private:
  regex_t compiled_{};
  int error_;
};

// Before it is compiled: the library repeats {m,n} by copying, one inside another by the product,
// and follows a back-reference for ever.
Status CheckCost(std::string_view pattern) {
  constexpr uint64_t kMostRepeats = 1000;
  uint64_t repeats = 1;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\') {
      ++at;
      if (at < pattern.size() && pattern[at] >= '1' && pattern[at] <= '9') {
        return InvalidArgument(
            fmt::format("'{}' has a back-reference (\\{}), which may take for ever; none was meant",
                        pattern, pattern[at]));
      }
    } else if (pattern[at] == '{') {
      uint64_t largest = 0;
      uint64_t number = 0;
      for (++at; at < pattern.size() && pattern[at] != '}'; ++at) {
        const bool is_digit = pattern[at] >= '0' && pattern[at] <= '9';
        number = is_digit
                     ? std::min<uint64_t>(number * 10 + static_cast<uint64_t>(pattern[at] - '0'),
                                          kMostRepeats + 1)
                     : 0;
        largest = std::max(largest, number);
      }
      repeats *= std::max<uint64_t>(largest, 1);
      if (repeats > kMostRepeats) {
        return InvalidArgument(
            fmt::format("'{}' repeats more than {} times by its {{m,n}} taken together", pattern,
                        kMostRepeats));
      }
    }
  }
  return Status::Ok();
}

Result<double> NumberByRegex(const ReadRule& rule, std::string_view text) {
  const Regex regex(rule.pattern);
  if (!regex.ok()) return InvalidArgument(regex.ErrorText());
  std::optional<std::string> found;
  size_t num_matches = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, std::min(end, kMaxLineBytes)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.pop_back();
    std::optional<std::string> captured = regex.Match(line);
    if (!captured) continue;
    if (++num_matches == 1) found = std::move(captured);
  }
  const std::string_view source = SourceName(rule.source);
  if (!found) {
    return NotFound(fmt::format("no line of {} matches '{}'", source, rule.pattern));
  }
  if (num_matches > 1) {
    return FailedPrecondition(
        fmt::format("{} lines of {} match '{}'; one was meant", num_matches, source, rule.pattern));
  }
  return ParseNumber(*found);
}

Result<double> NumberByPath(const ReadRule& rule, std::string_view text) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<PathStep> path, ParsePath(rule.pattern));
  Result<double> number =
      rule.kind == ReadRule::Kind::kJson ? NumberInJson(text, path) : NumberInYaml(text, path);
  if (number.ok()) return number;
  return number.status().WithContext(
      fmt::format("{} of {}", rule.pattern, SourceName(rule.source)));
}

Result<double> ReadNumber(const ReadRule& rule, const ProgramOutput& output) {
  if (rule.source == Source::kFile && !output.file) {
    return NotFound("the program has not written {output}");
  }
  const std::string& text = rule.source == Source::kStdout   ? output.standard_output
                            : rule.source == Source::kStderr ? output.standard_error
                                                             : *output.file;
  if (text.size() > kMaxOutputBytes) {
    return ResourceExhausted(fmt::format("{} is {} bytes long; at most {} are read",
                                         SourceName(rule.source), text.size(), kMaxOutputBytes));
  }
  return rule.kind == ReadRule::Kind::kRegex ? NumberByRegex(rule, text) : NumberByPath(rule, text);
}

// Perl's classes compile here and mean something else.
Status CheckDialect(std::string_view pattern) {
  for (size_t at = pattern.find('\\'); at != std::string_view::npos && at + 1 < pattern.size();
       at = pattern.find('\\', at + 2)) {
    const char c = pattern[at + 1];
    if (c == 'd' || c == 'D' || c == 't' || c == 'n') {
      return InvalidArgument(
          fmt::format("'{}' has \\{}, which extended expressions lack; [0-9], [^0-9] or "
                      "[[:blank:]] was meant",
                      pattern, c));
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<Reading> ReadMetrics(const std::vector<ReadRule>& rules, const ProgramOutput& output) {
  std::vector<Reading> readings;
  for (const ReadRule& rule : rules) {
    Reading& reading = readings.emplace_back();
    reading.metric = rule.metric;
    reading.better = rule.better;
    const std::optional<MetricUnit> unit = FindMetricUnit(rule.unit);
    if (!unit) {
      reading.status = InvalidArgument(fmt::format("{}: unknown unit '{}'; one of {} was meant",
                                                   rule.metric, rule.unit, KnownMetricUnits()));
      continue;
    }
    reading.unit = std::string(unit->base);
    const Result<double> number = ReadNumber(rule, output);
    if (!number.ok()) {
      reading.status = number.status().WithContext(rule.metric);
    } else if (const double value = *number * unit->factor; std::isfinite(value)) {
      reading.value = value;
    } else {
      reading.status =
          OutOfRange(fmt::format("{}: {} {} is too large", rule.metric, *number, rule.unit));
    }
  }
  return readings;
}

Status CheckPattern(ReadRule::Kind kind, const std::string& pattern) {
  if (kind != ReadRule::Kind::kRegex) return ParsePath(pattern).status();
  if (pattern.empty()) return InvalidArgument("is empty; an expression was meant");
  PIPEYARD_RETURN_IF_ERROR(CheckDialect(pattern));
  PIPEYARD_RETURN_IF_ERROR(CheckCost(pattern));
  const Regex regex(pattern);
  if (!regex.ok()) {
    return InvalidArgument(
        fmt::format("'{}' is no POSIX extended expression: {}", pattern, regex.ErrorText()));
  }
  if (regex.num_captures() == 1) return Status::Ok();
  return InvalidArgument(
      fmt::format("'{}' has {} captures; exactly one (...) around the number "
                  "was meant",
                  pattern, regex.num_captures()));
}

std::string_view SourceName(Source source) {
  if (source == Source::kStdout) return "stdout";
  return source == Source::kStderr ? "stderr" : "file";
}

std::string_view KindName(ReadRule::Kind kind) {
  if (kind == ReadRule::Kind::kRegex) return "regex";
  return kind == ReadRule::Kind::kJson ? "json" : "yaml";
}

}  // namespace pipeyard::commands
