// Console: where a command reads and writes. Results go to stdout, everything else to stderr.
//
// Thread safety: confined to main's thread, but for what says otherwise.
#pragma once

#include <string>
#include <string_view>

#include "base/env.h"
#include "base/signals.h"
#include "base/status.h"
#include "proto/options/options.h"

namespace pipeyard::cli {

enum class Format { kTable, kJson };

struct Console {
  std::string controller_address;
  Format format = Format::kTable;
  // stdout is a terminal and neither --no-color nor NO_COLOR says otherwise.
  bool is_colored = false;
  // stderr is a terminal: progress may be redrawn.
  bool is_interactive = false;
  Env& env;
  SignalWatcher& signals;

  void Out(std::string_view text) const;
  // "pipeyard: TEXT" and a line end, on stderr. Control characters, which may stand in what a user
  // or the controller wrote, are escaped: it is one line always.
  void Say(std::string_view text) const;
  // The same without the program's name: "FILE:LINE: what is wrong there".
  void SayLine(std::string_view line) const;
  // Says the message and returns the exit status that goes with the code.
  int Fail(const Status& status) const;
};

Console MakeConsole(const options::Parsed& parsed, const options::Environment& environment,
                    SignalWatcher& signals);

// Reads a file for a command; "-" is stdin. Errors name the path.
Result<std::string> ReadInput(Env& env, const std::string& path);

}  // namespace pipeyard::cli
