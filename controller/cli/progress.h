// Shows a run's progress: one line that is redrawn on a terminal, else a line at each tenth.
//
// Thread safety: confined to one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::cli {

class ProgressDisplay {
 public:
  // `out` and `clock` are borrowed and outlive this. `redraws`: `out` is a terminal of as
  // many columns as `columns` says.
  ProgressDisplay(std::FILE* out, bool redraws, std::function<int()> columns, const Clock& clock);
  // Ends the line that is being redrawn.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void Show(const v1::RunProgress& progress);
  // Ends the line that is being redrawn, so that other text may follow.
  void Finish();

  // "run 019b76da-a800 running [#####.....] 18/36 trials, 9s, about 9s left; host1: writers=1 3/6"
  // without a line end; at most `columns` characters where that is not 0. What is too long loses
  // the bar first, then the middle of what the hosts do.
  static std::string Line(const v1::RunProgress& progress, Nanos elapsed, int columns);

 private:
  Nanos Remaining(const v1::RunProgress& progress, Nanos elapsed);

  std::FILE* const out_;
  const bool redraws_;
  const std::function<int()> columns_;
  const Clock& clock_;
  const MonotonicTime start_;
  bool is_line_open_ = false;
  std::optional<uint32_t> first_ended_;
  int last_tenth_ = -1;
  std::string last_state_;
};

// Width of the terminal at `fd`; 80 where it cannot be told.
int TerminalColumns(int fd);

}  // namespace pipeyard::cli
