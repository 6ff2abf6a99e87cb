#include "controller/analysis/number_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/printable.h"

namespace pipeyard::analysis {
namespace {

constexpr size_t kMaxReported = 10;
constexpr size_t kMaxQuoted = 40;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (char c : text.substr(0, kMaxQuoted)) quoted += c >= ' ' && c < 0x7f ? c : '?';
  return quoted + (text.size() > kMaxQuoted ? "...'" : "'");
}

// The problem with `word`, or nullopt with its value set.
std::optional<std::string> ParseNumber(std::string_view word, double* value) {
  std::string_view digits = word;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
  if (error == std::errc::result_out_of_range) return Quote(word) + " is out of range";
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Quote(word) + " is not a number; one number a line was meant";
  }
  if (!std::isfinite(*value)) return Quote(word) + " is not a finite number";
  return std::nullopt;
}

}  // namespace

Result<std::vector<double>> ReadNumbers(std::string_view text, std::string_view file_name) {
  // Problems are told apart by their lines.
  const std::string shown_name = EscapeControls(file_name);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<double> values;
  std::string problems;
  size_t num_problems = 0;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    content = Trim(content.substr(0, content.find('#')));
    if (content.empty()) continue;
    double value = 0;
    const std::optional<std::string> problem = ParseNumber(content, &value);
    if (!problem) {
      values.push_back(value);
    } else if (++num_problems <= kMaxReported) {
      problems +=
          fmt::format("{}{}:{}: {}", problems.empty() ? "" : "\n", shown_name, line, *problem);
    }
  }
  if (num_problems > kMaxReported) {
    problems +=
        fmt::format("\n{}: {} more lines are no numbers", shown_name, num_problems - kMaxReported);
  }
  if (num_problems > 0) return InvalidArgument(problems);
  if (values.empty()) return InvalidArgument(fmt::format("{}: holds no numbers", shown_name));
  return values;
}

}  // namespace pipeyard::analysis
