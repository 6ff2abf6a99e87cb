#include "proto/yaml/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/utf8.h"

namespace pipeyard::yaml {
namespace {

constexpr size_t kMaxShownBytes = 400;

// Printable, on one line, short.
std::string Clean(std::string_view text) {
  std::string_view rest = FirstBytes(text, kMaxShownBytes);
  std::string clean;
  while (!rest.empty()) {
    const auto [character, is_valid] = TakeCharacter(rest);
    if (is_valid && IsControl(character)) {
      clean += ' ';
    } else {
      clean += character;
    }
  }
  if (text.size() > kMaxShownBytes) clean += "...";
  return clean;
}

}  // namespace

std::string Problem::Format(std::string_view file_name) const {
  std::string text(file_name);
  if (line != 0) text += fmt::format(":{}:{}", line, column);
  text += ": ";
  if (is_warning) text += "warning: ";
  text += what;
  if (!meant.empty()) text += "; " + meant;
  return text;
}

void Problems::Error(Place place, std::string what, std::string meant) {
  Add(place, std::move(what), std::move(meant), false);
}

void Problems::Warning(Place place, std::string what, std::string meant) {
  Add(place, std::move(what), std::move(meant), true);
}

void Problems::Error(Place place, std::string_view about, const Status& status) {
  Add(place, fmt::format("{}: {}", about, status.message()), {}, false);
}

void Problems::Add(Place place, std::string what, std::string meant, bool is_warning) {
  if (!is_warning) ++num_errors_;
  if (meant.empty()) {
    // Texts quoted from the file come first in `what`; the last "; " is ours.
    if (const size_t split = what.rfind("; "); split != std::string::npos) {
      meant = what.substr(split + 2);
      what.resize(split);
    }
  }
  if (place.line == 0 && !what.starts_with("--set")) what = "--set: " + what;
  Problem problem{.line = place.line,
                  .column = place.column,
                  .what = Clean(what),
                  .meant = Clean(meant),
                  .is_warning = is_warning};
  const auto is_same = [&](const Problem& other) {
    return other.line == problem.line && other.column == problem.column &&
           other.what == problem.what;
  };
  if (std::any_of(kept_.begin(), kept_.end(), is_same)) return;
  if (kept_.size() == kMaxKept) {
    ++num_dropped_;
    return;
  }
  kept_.push_back(std::move(problem));
}

std::vector<Problem> Problems::Take() {
  std::stable_sort(kept_.begin(), kept_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (num_dropped_ > 0) {
    const Problem& last = kept_.back();
    kept_.push_back({.line = last.line,
                     .column = last.column,
                     .what = fmt::format("{} more problems are not shown", num_dropped_),
                     .meant = {},
                     .is_warning = num_errors_ == 0});
  }
  num_dropped_ = 0;
  num_errors_ = 0;
  return std::exchange(kept_, {});
}

}  // namespace pipeyard::yaml
