// FileTable: which files are open, as both sides must agree, and which operations they allow.
//
// Thread safety: thread-compatible.
#pragma once

#include <array>
#include <cstdint>

#include "workloads/pipe/differential/pipe_system.h"

namespace pipeyard::pipe::differential {

class FileTable {
 public:
  struct File {
    bool is_open = false;
    PipeEnd end = PipeEnd::kRead;
    int pipe = -1;
    FileFlags flags;
  };

  bool IsOpen(int file) const { return files_[Index(file)].is_open; }
  bool IsOpen(int file, PipeEnd end) const {
    return IsOpen(file) && files_[Index(file)].end == end;
  }
  const File& file(int file) const { return files_[Index(file)]; }
  FileSet OpenFiles() const {
    FileSet set = 0;
    for (int i = 0; i < kMaxFiles; ++i) set |= FileSet{IsOpen(i)} << i;
    return set;
  }
  // Open files of one end of a pipe.
  int CountEnds(int pipe, PipeEnd end) const {
    int count = 0;
    for (const File& file : files_) count += file.is_open && file.pipe == pipe && file.end == end;
    return count;
  }

  // The engine watches an end of a pipe where the kernel watches a file: one watch each.
  bool MayWatch(int actor, int file) const {
    const FileSet watched = watched_[Index(actor)];
    if ((watched >> file & 1) != 0) return true;
    for (int other = 0; other < kMaxFiles; ++other) {
      if ((watched >> other & 1) != 0 && files_[Index(other)].pipe == files_[Index(file)].pipe &&
          files_[Index(other)].end == files_[Index(file)].end) {
        return false;
      }
    }
    return true;
  }
  void Watch(int actor, int file) { watched_[Index(actor)] |= FileSet{1} << file; }

  // Whether the operation keeps the preconditions of PipeSystem. Each run adds its own rules for
  // what would wait or has no one answer.
  bool Allows(const Operation& operation) const;

  void Create(int file, FileFlags flags) {
    files_[Index(file)] = {true, PipeEnd::kRead, num_pipes_, flags};
    files_[Index(file + 1)] = {true, PipeEnd::kWrite, num_pipes_, flags};
    ++num_pipes_;
  }
  void Open(int file, PipeEnd end, int new_file) {
    files_[Index(new_file)] = {true, end, files_[Index(file)].pipe, kFlagsOfOpen};
  }
  void Close(int file) {
    files_[Index(file)].is_open = false;
    for (FileSet& watched : watched_) watched &= ~(FileSet{1} << file);
  }
  void SetFlags(int file, FileFlags flags) { files_[Index(file)].flags = flags; }

 private:
  static size_t Index(int file) { return static_cast<size_t>(file); }

  std::array<File, kMaxFiles> files_{};
  std::array<FileSet, kMaxActors> watched_{};
  int num_pipes_ = 0;  // ever created
};

}  // namespace pipeyard::pipe::differential
