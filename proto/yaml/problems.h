// Problems: collects what is wrong with a YAML file (a sweep, a command of the agent), so that all
// of it is told at once.
//
// It cleans what it is given (user text may hold escapes of a terminal, or megabytes) and stops
// keeping after kMaxKept. Thread safety: thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/yaml/node.h"

namespace pipeyard::yaml {

// One thing wrong with a file. line and column count from 1; both are 0 for what has no place in it
// (--set).
struct Problem {
  uint32_t line = 0;
  uint32_t column = 0;
  std::string what;   // "unknown key 'paralel'"
  std::string meant;  // "did you mean 'parameters'?"; may be empty
  bool is_warning = false;

  // "FILE:LINE:COL: what; meant", with "warning: " before `what` where it is one.
  std::string Format(std::string_view file_name) const;
};

class Problems {
 public:
  // Without `meant`, a `what` of the form "what; meant" is split.
  void Error(Place place, std::string what, std::string meant = {});
  void Warning(Place place, std::string what, std::string meant = {});
  // `status` with the name of what it is about.
  void Error(Place place, std::string_view about, const Status& status);

  bool has_errors() const { return num_errors_ > 0; }
  size_t num_errors() const { return num_errors_; }

  // By place; what was not kept is counted in a last problem. Leaves this empty.
  std::vector<Problem> Take();

 private:
  static constexpr size_t kMaxKept = 200;

  void Add(Place place, std::string what, std::string meant, bool is_warning);

  std::vector<Problem> kept_;
  size_t num_errors_ = 0;
  size_t num_dropped_ = 0;
};

}  // namespace pipeyard::yaml
