// PipeSystem: one side of the comparison: files of pipes, as a process sees them through system
// calls.
//
// Thread safety: calls of different actors may overlap where both sides of a pipe may; whoever
// drives it sees to it that no file is closed while another actor is inside a call on it.
// Ownership: each implementation owns its pipes and ends them in Reset().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "workloads/pipe/differential/operation.h"
#include "workloads/pipe/pipe.h"

namespace pipeyard::pipe::differential {

// What a call returned: its value, or the errno as a negative number.
struct Outcome {
  int64_t value = 0;
  bool is_sigpipe = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};
// "4096", "EPIPE (Broken pipe) and SIGPIPE".
std::string DescribeOutcome(const Outcome& outcome);

struct FileFlags {
  bool is_nonblocking = false;
  bool is_packet = false;
};

// Of a file that Open() made.
inline constexpr FileFlags kFlagsOfOpen{.is_nonblocking = true};

// What poll(2) or epoll_wait(2) said, by file.
using PollMasks = std::array<uint16_t, kMaxFiles>;

class PipeSystem {
 public:
  virtual ~PipeSystem() = default;

  // Preconditions, for all: the files named are open, the new ones are not.
  virtual Outcome Create(int actor, int read_file, int write_file, FileFlags flags) = 0;
  virtual Outcome Open(int actor, int file, PipeEnd end, int new_file) = 0;
  virtual Outcome Close(int actor, int file) = 0;
  virtual Outcome Write(int actor, int file, const char* data, size_t size, bool is_quiet) = 0;
  virtual Outcome Read(int actor, int file, char* data, size_t size) = 0;
  virtual Outcome SetFlags(int actor, int file, FileFlags flags) = 0;
  virtual Outcome Resize(int actor, int file, uint32_t bytes) = 0;
  virtual Outcome Capacity(int actor, int file) = 0;
  virtual Outcome QueuedBytes(int actor, int file) = 0;
  // How many files have something to say; their masks, 0 for all others.
  virtual Outcome Poll(int actor, FileSet files, bool is_waiting, PollMasks& masks) = 0;
  virtual Outcome Watch(int actor, int file) = 0;
  virtual Outcome TakeReady(int actor, PollMasks& masks) = 0;
  // As a signal does, to an actor that waits inside a call.
  virtual void Interrupt(int actor) = 0;

  // Closes everything.
  virtual void Reset() = 0;
};

}  // namespace pipeyard::pipe::differential
