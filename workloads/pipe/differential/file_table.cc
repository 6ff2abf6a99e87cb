#include "workloads/pipe/differential/file_table.h"

namespace pipeyard::pipe::differential {

bool FileTable::Allows(const Operation& operation) const {
  const int file = operation.file;
  switch (operation.action) {
    case Action::kCreate:
      return file + 1 < kMaxFiles && !IsOpen(file) && !IsOpen(file + 1);
    case Action::kOpenReader:
    case Action::kOpenWriter:
      return IsOpen(file) && operation.value < kMaxFiles &&
             !IsOpen(static_cast<int>(operation.value));
    case Action::kWrite:
    case Action::kWriteQuietly:
      return IsOpen(file, PipeEnd::kWrite);
    case Action::kRead:
      return IsOpen(file, PipeEnd::kRead);
    case Action::kPoll:
      // Of files that are not open it is asked without them.
      return (operation.value & OpenFiles()) != 0;
    case Action::kWaitPoll:
      return operation.value != 0 && (operation.value & ~OpenFiles()) == 0;
    case Action::kWatch:
      return IsOpen(file) && MayWatch(operation.actor, file);
    case Action::kTakeReady:
    case Action::kInterrupt:
      return true;
    case Action::kClose:
    case Action::kSetNonblocking:
    case Action::kSetPacket:
    case Action::kResize:
    case Action::kCapacity:
    case Action::kQueuedBytes:
      break;
  }
  return IsOpen(file);
}

}  // namespace pipeyard::pipe::differential
