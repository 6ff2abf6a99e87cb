// Operation and Program: what the differential tester does to both sides, as values and as text.
//
//   # any line may end in a comment
//   setting page_cache pool
//   create f0 f1 nonblocking
//   write f1 4097
//   a1 read f0 100
//
// One operation a line, `aN` in front where another actor than a0 calls. Files are numbered; an
// operation that cannot be applied (its file is not open, its place is taken, the actor is still
// inside a call) is passed over on both sides, so any part of a program is a program: that is what
// shrinking needs.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace pipeyard::pipe::differential {

inline constexpr int kMaxFiles = 12;
inline constexpr int kMaxActors = 6;
// Bit i: file i.
using FileSet = uint32_t;

enum class Action : uint8_t {
  kCreate,          // pipe2(2): its read end becomes `file`, its write end the file after it
  kOpenReader,      // `value` becomes another file of the read end of `file`'s pipe
  kOpenWriter,      // the same of the write end
  kClose,           // close(2)
  kWrite,           // `value` bytes
  kWriteQuietly,    // the same without SIGPIPE
  kRead,            // up to `value` bytes
  kSetNonblocking,  // O_NONBLOCK on (value 1) or off (0)
  kSetPacket,       // O_DIRECT on or off
  kResize,          // F_SETPIPE_SZ to `value` bytes
  kCapacity,        // F_GETPIPE_SZ
  kQueuedBytes,     // FIONREAD
  kPoll,            // the files of the set `value`, without waiting
  kWaitPoll,        // the same, waiting until one is ready
  kWatch,           // puts `file` into the actor's edge-triggered watches
  kTakeReady,       // what the actor's watches have reported since, without waiting
  kInterrupt,       // a signal to the actor, when it waits inside a call
};
inline constexpr int kNumActions = static_cast<int>(Action::kInterrupt) + 1;

struct Operation {
  Action action = Action::kCreate;
  uint8_t actor = 0;
  uint8_t file = 0;
  uint32_t value = 0;

  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Program {
  // Names and values that describe how it is to be run (run_settings.h).
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Operation> operations;
};

std::string FormatOperation(const Operation& operation);
std::string FormatProgram(const Program& program);
// Errors: kInvalidArgument names the line and what was expected.
Result<Program> ParseProgram(std::string_view text);

}  // namespace pipeyard::pipe::differential
