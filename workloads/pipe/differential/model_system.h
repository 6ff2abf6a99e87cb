// ModelSystem: the rules of kernel-mechanisms.md A2, A3, A5, A6 once more, as short as they can be
// said, over ordinary containers: for where no kernel is asked (fuzzing), and, with a known fault
// built in, to show that the comparison finds it. It shares no code with the engine.
//
// It knows no waiting (a call that would wait returns -EDEADLK) and no watches. Thread safety:
// thread-compatible. Ownership: owns its pipes.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "workloads/pipe/differential/pipe_system.h"
#include "workloads/pipe/pipe_user.h"

namespace pipeyard::pipe::differential {

// What a wrong pipe does.
enum class Fault {
  kNone,
  kMergesAcrossConsumed,  // counts what was read of the last slot as free
  kMergesIntoPackets,
  kMergesOnlyWholeWrites,  // never the first bytes of a longer write
  kMergesAcrossPages,      // one byte too many
  kNeverMerges,
  kEmptyWriteTakesSlot,
  kEmptyWriteAsksReaders,  // EPIPE for 0 bytes
  kShortWriteOfAtomic,     // what fits of up to PIPE_BUF bytes
  kKeepsRestOfPacket,
  kReadsAcrossPackets,
  kPacketSticksToFile,  // O_DIRECT cannot be taken back
  kEndOfFileIsEagain,
  kEofBeforeData,  // at the last writer's close what is left is lost
  kBrokenPipeWithoutSignal,
  kQuietWriteSignals,
  kBusyByBytes,  // shrinks by bytes queued, not by slots
  kRoundsSizeDown,
  kShrinkAsksQuota,
  kReachingIsOver,   // of the soft limit
  kOneSlotOverSoft,  // the minimum before Linux 5.14
  kAdminIgnoresMaxSize,
  kResizeKeepsPosition,  // what lies across the ring's end gets lost
  kQueuedCountsSlots,
  kWritableByBytes,  // POLLOUT while a byte fits, though by a merge
  kHangupOnlyWhenEmpty,
  kNoErrorWithoutReaders,  // POLLERR missing
  kCount,
};
std::string_view FaultName(Fault fault);

struct ModelOptions {
  uint32_t page_bytes = 4096;
  PipeLimits limits;
  Capabilities capabilities;
  uint64_t user_slots = 0;  // of pipes beside these
  Fault fault = Fault::kNone;
};

class ModelSystem : public PipeSystem {
 public:
  explicit ModelSystem(const ModelOptions& options)
      : options_(options), user_slots_(options.user_slots) {}

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
  void Interrupt(int) override {}
  void Reset() override;

  uint64_t user_slots() const { return user_slots_; }

 private:
  struct ModelSlot {
    std::string bytes;  // from the page's start, those already read included
    size_t read = 0;
    bool is_packet = false;
    size_t Length() const { return bytes.size() - read; }
  };
  struct ModelPipe {
    std::deque<ModelSlot> slots;
    uint64_t max_slots = 0;
    int readers = 1;
    int writers = 1;
    bool IsFull() const { return slots.size() >= max_slots; }
  };
  struct File {
    std::shared_ptr<ModelPipe> pipe;  // shared by the files of both ends; the last one ends it
    PipeEnd end = PipeEnd::kRead;
    FileFlags flags;
  };

  File& At(int file) { return files_[static_cast<size_t>(file)]; }
  bool Has(Fault fault) const { return options_.fault == fault; }
  bool IsOverSoft(uint64_t slots) const;
  bool IsOverHard(uint64_t slots) const;
  size_t Merge(ModelPipe& pipe, std::string_view data) const;
  Outcome WouldWait(const File& file) const;
  uint16_t MaskOf(const File& file) const;

  const ModelOptions options_;
  std::array<File, kMaxFiles> files_;
  uint64_t user_slots_;
};

}  // namespace pipeyard::pipe::differential
