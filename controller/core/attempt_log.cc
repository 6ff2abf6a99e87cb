#include "controller/core/attempt_log.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace pipeyard::core {
namespace {

struct TrialPath {
  std::string_view host;
  std::string_view variant;
  uint32_t index = 0;
};

std::optional<uint32_t> ReadNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

// From behind: names of hosts may have a slash.
Result<TrialPath> ReadPath(std::string_view text) {
  const size_t last = text.rfind('/');
  const size_t middle = last == std::string_view::npos || last == 0 ? std::string_view::npos
                                                                    : text.rfind('/', last - 1);
  const auto index =
      last == std::string_view::npos ? std::nullopt : ReadNumber(text.substr(last + 1));
  if (middle == std::string_view::npos || middle == 0 || middle + 1 == last || !index) {
    return InvalidArgument(
        fmt::format("'{}' names no trial; HOST/VARIANT/INDEX was meant, as `run show` prints it",
                    EscapeControls(text)));
  }
  return TrialPath{text.substr(0, middle), text.substr(middle + 1, last - middle - 1), *index};
}

Result<const v1::Cell*> FindCell(const v1::Run& run, const TrialPath& path) {
  const v1::Cell* found = nullptr;
  for (const v1::Cell& cell : run.cells()) {
    if (cell.host() != path.host && cell.host_id() != path.host) continue;
    if (!std::string_view(cell.variant_id()).starts_with(path.variant)) continue;
    if (found != nullptr) {
      return InvalidArgument(fmt::format("variant {} is ambiguous on {}: {}, {}",
                                         EscapeControls(path.variant), cell.host(),
                                         found->variant_id(), cell.variant_id()));
    }
    found = &cell;
  }
  if (found != nullptr) return found;
  return NotFound(fmt::format("run {} has no cell {}/{}", run.summary().run_id(),
                              EscapeControls(path.host), EscapeControls(path.variant)));
}

Result<const v1::Attempt*> FindIn(const v1::Trial& trial, const std::string& wanted) {
  if (trial.attempts().empty()) return NotFound("the trial has no attempt yet");
  if (wanted.empty()) return &trial.attempts(trial.attempts_size() - 1);
  const std::optional<uint32_t> number = ReadNumber(wanted);
  const v1::Attempt* found = nullptr;
  for (const v1::Attempt& attempt : trial.attempts()) {
    if (number && attempt.number() == *number) return &attempt;
    if (!std::string_view(attempt.attempt_id()).starts_with(wanted)) continue;
    if (found != nullptr) {
      return InvalidArgument(fmt::format("attempt {} is ambiguous", EscapeControls(wanted)));
    }
    found = &attempt;
  }
  if (found != nullptr) return found;
  return NotFound(fmt::format("the trial has no attempt {}; it has {}", EscapeControls(wanted),
                              trial.attempts_size()));
}

}  // namespace

Result<v1::AttemptLog> FindAttempt(const v1::Run& run, const v1::GetLogRequest& request) {
  PIPEYARD_ASSIGN_OR_RETURN(const TrialPath path, ReadPath(request.trial()));
  PIPEYARD_ASSIGN_OR_RETURN(const v1::Cell* const cell, FindCell(run, path));
  for (const v1::Trial& trial : cell->trials()) {
    if (trial.index() != path.index) continue;
    PIPEYARD_ASSIGN_OR_RETURN(const v1::Attempt* const attempt, FindIn(trial, request.attempt()));
    v1::AttemptLog log;
    log.set_run_id(run.summary().run_id());
    log.set_sweep(run.summary().sweep());
    log.set_host(cell->host());
    log.set_variant_id(cell->variant_id());
    log.set_trial_index(trial.index());
    *log.mutable_settings() = cell->settings();
    *log.mutable_attempt() = *attempt;
    return log;
  }
  return NotFound(fmt::format("{}/{} has no trial {}; it has {}", cell->host(), cell->variant_id(),
                              path.index, cell->trials_size()));
}

}  // namespace pipeyard::core
