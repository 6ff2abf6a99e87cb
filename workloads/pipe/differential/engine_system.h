// EngineSystem: the side that is judged: the engine's pipes behind a table of files. Worker i acts
// for actor i.
//
// Thread safety: as PipeSystem. Ownership: borrows the engine; pipes end with their last file.
#pragma once

#include <array>
#include <memory>

#include "workloads/pipe/differential/pipe_system.h"
#include "workloads/pipe/engine.h"
#include "workloads/pipe/watch.h"

namespace pipeyard::pipe::differential {

class EngineSystem : public PipeSystem {
 public:
  explicit EngineSystem(Engine& engine) : engine_(engine) {}
  EngineSystem(const EngineSystem&) = delete;
  EngineSystem& operator=(const EngineSystem&) = delete;
  ~EngineSystem() override { Reset(); }

  Outcome Create(int actor, int read_file, int write_file, FileFlags flags) override;
  Outcome Open(int actor, int file, PipeEnd end, int new_file) override;
  Outcome Close(int actor, int file) override;
  Outcome Write(int actor, int file, const char* data, size_t size, bool is_quiet) override;
  Outcome Read(int actor, int file, char* data, size_t size) override;
  Outcome SetFlags(int actor, int file, FileFlags flags) override;
  Outcome Resize(int actor, int file, uint32_t bytes) override;
  Outcome Capacity(int actor, int file) override;
  Outcome QueuedBytes(int actor, int file) override;
  Outcome Poll(int actor, FileSet files, bool is_waiting, PollMasks& masks) override;
  Outcome Watch(int actor, int file) override;
  Outcome TakeReady(int actor, PollMasks& masks) override;
  void Interrupt(int actor) override { engine_.worker(actor).Interrupt(); }
  void Reset() override;

  Pipe PipeOf(int file) const { return files_[static_cast<size_t>(file)].pipe; }

 protected:
  struct File {
    Pipe pipe;  // not valid: not open
    PipeEnd end = PipeEnd::kRead;
    FileFlags flags;
  };

  File& At(int file) { return files_[static_cast<size_t>(file)]; }
  Engine& engine() { return engine_; }

 private:
  void Unwatch(int file);

  Engine& engine_;
  std::array<File, kMaxFiles> files_{};
  // By actor: its watches, made with the first one, and the files that they watch.
  std::array<std::unique_ptr<WatchSet>, kMaxActors> watches_;
  std::array<FileSet, kMaxActors> watched_{};
};

}  // namespace pipeyard::pipe::differential
