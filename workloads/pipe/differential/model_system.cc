#include "workloads/pipe/differential/model_system.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>

namespace pipeyard::pipe::differential {
namespace {

constexpr uint64_t kLargestSize = uint64_t{1} << 31;
constexpr size_t kAtomicBytes = 4096;

// Powers of two pages; 0: too large.
uint64_t RoundUp(uint64_t bytes, uint64_t page_bytes) {
  if (bytes > kLargestSize) return 0;
  uint64_t slots = 1;
  while (slots * page_bytes < bytes) slots *= 2;
  return slots;
}

constexpr std::string_view kFaultNames[] = {
    "None",
    "MergesAcrossConsumed",
    "MergesIntoPackets",
    "MergesOnlyWholeWrites",
    "MergesAcrossPages",
    "NeverMerges",
    "EmptyWriteTakesSlot",
    "EmptyWriteAsksReaders",
    "ShortWriteOfAtomic",
    "KeepsRestOfPacket",
    "ReadsAcrossPackets",
    "PacketSticksToFile",
    "EndOfFileIsEagain",
    "EofBeforeData",
    "BrokenPipeWithoutSignal",
    "QuietWriteSignals",
    "BusyByBytes",
    "RoundsSizeDown",
    "ShrinkAsksQuota",
    "ReachingIsOver",
    "OneSlotOverSoft",
    "AdminIgnoresMaxSize",
    "ResizeKeepsPosition",
    "QueuedCountsSlots",
    "WritableByBytes",
    "HangupOnlyWhenEmpty",
    "NoErrorWithoutReaders",
};
static_assert(std::size(kFaultNames) == static_cast<size_t>(Fault::kCount));

}  // namespace

std::string_view FaultName(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

bool ModelSystem::IsOverSoft(uint64_t slots) const {
  const uint64_t limit = options_.limits.user_pages_soft;
  return limit != 0 && (slots > limit || (Has(Fault::kReachingIsOver) && slots == limit)) &&
         !options_.capabilities.sys_resource && !options_.capabilities.sys_admin;
}

bool ModelSystem::IsOverHard(uint64_t slots) const {
  const uint64_t limit = options_.limits.user_pages_hard;
  return limit != 0 && slots > limit && !options_.capabilities.sys_resource &&
         !options_.capabilities.sys_admin;
}

Outcome ModelSystem::Create(int, int read_file, int write_file, FileFlags flags) {
  uint64_t slots = 16;
  if (slots * options_.page_bytes > options_.limits.max_bytes &&
      !options_.capabilities.sys_resource) {
    slots = std::max<uint64_t>(1, options_.limits.max_bytes / options_.page_bytes);
  }
  if (IsOverSoft(user_slots_ + slots)) slots = Has(Fault::kOneSlotOverSoft) ? 1 : 2;
  if (IsOverHard(user_slots_ + slots)) return {-ENFILE, false};
  auto pipe = std::make_shared<ModelPipe>();
  pipe->max_slots = slots;
  user_slots_ += slots;
  At(read_file) = {pipe, PipeEnd::kRead, flags};
  At(write_file) = {pipe, PipeEnd::kWrite, flags};
  return {};
}

Outcome ModelSystem::Open(int, int file, PipeEnd end, int new_file) {
  const std::shared_ptr<ModelPipe> pipe = At(file).pipe;
  ++(end == PipeEnd::kRead ? pipe->readers : pipe->writers);
  At(new_file) = {pipe, end, kFlagsOfOpen};
  return {};
}

Outcome ModelSystem::Close(int, int file) {
  const File closed = std::exchange(At(file), File());
  ModelPipe& pipe = *closed.pipe;
  --(closed.end == PipeEnd::kRead ? pipe.readers : pipe.writers);
  if (Has(Fault::kEofBeforeData) && pipe.writers == 0) pipe.slots.clear();
  if (pipe.readers + pipe.writers == 0) user_slots_ -= pipe.max_slots;
  return {};
}

size_t ModelSystem::Merge(ModelPipe& pipe, std::string_view data) const {
  const size_t page = options_.page_bytes;
  const size_t first = data.size() % page;
  if (first == 0 || pipe.slots.empty() || Has(Fault::kNeverMerges)) return 0;
  if (Has(Fault::kMergesOnlyWholeWrites) && first != data.size()) return 0;
  ModelSlot& last = pipe.slots.back();
  if (last.is_packet && !Has(Fault::kMergesIntoPackets)) return 0;
  const size_t used = Has(Fault::kMergesAcrossConsumed) ? last.Length() : last.bytes.size();
  if (used + first > page + Has(Fault::kMergesAcrossPages)) return 0;
  last.bytes.append(data.substr(0, first));
  return first;
}

Outcome ModelSystem::WouldWait(const File& file) const {
  return {file.flags.is_nonblocking ? -EAGAIN : -EDEADLK, false};
}

Outcome ModelSystem::Write(int, int file, const char* data, size_t size, bool is_quiet) {
  File& from = At(file);
  ModelPipe& pipe = *from.pipe;
  if (size == 0) {
    if (Has(Fault::kEmptyWriteAsksReaders) && pipe.readers == 0) return {-EPIPE, true};
    if (Has(Fault::kEmptyWriteTakesSlot) && !pipe.IsFull()) pipe.slots.emplace_back();
    return {};
  }
  if (pipe.readers == 0) {
    const bool is_signalled = !is_quiet || Has(Fault::kQuietWriteSignals);
    return {-EPIPE, is_signalled && !Has(Fault::kBrokenPipeWithoutSignal)};
  }
  std::string_view left(data, size);
  left.remove_prefix(Merge(pipe, left));
  while (!left.empty() && !pipe.IsFull()) {
    const std::string_view piece = left.substr(0, options_.page_bytes);
    pipe.slots.push_back({std::string(piece), 0, from.flags.is_packet});
    left.remove_prefix(piece.size());
  }
  if (Has(Fault::kShortWriteOfAtomic) && left.size() == size && size <= kAtomicBytes &&
      !pipe.slots.back().is_packet && pipe.slots.back().bytes.size() < options_.page_bytes) {
    const size_t room = options_.page_bytes - pipe.slots.back().bytes.size();
    const std::string_view piece = left.substr(0, room);
    pipe.slots.back().bytes.append(piece);
    left.remove_prefix(piece.size());
  }
  if (left.size() == size) return WouldWait(from);
  return {static_cast<int64_t>(size - left.size()), false};
}

Outcome ModelSystem::Read(int, int file, char* data, size_t size) {
  File& from = At(file);
  ModelPipe& pipe = *from.pipe;
  if (size == 0) return {};
  if (pipe.slots.empty()) {
    if (pipe.writers == 0 && !Has(Fault::kEndOfFileIsEagain)) return {};
    return WouldWait(from);
  }
  size_t done = 0;
  while (done < size && !pipe.slots.empty()) {
    ModelSlot& slot = pipe.slots.front();
    const size_t length = std::min(slot.Length(), size - done);
    std::copy_n(slot.bytes.begin() + static_cast<std::ptrdiff_t>(slot.read), length, data + done);
    slot.read += length;
    done += length;
    const bool is_packet = slot.is_packet;
    if (slot.Length() == 0 || (is_packet && !Has(Fault::kKeepsRestOfPacket))) {
      pipe.slots.pop_front();
    }
    if (is_packet && !Has(Fault::kReadsAcrossPackets)) break;
  }
  return {static_cast<int64_t>(done), false};
}

Outcome ModelSystem::SetFlags(int, int file, FileFlags flags) {
  if (Has(Fault::kPacketSticksToFile)) flags.is_packet |= At(file).flags.is_packet;
  At(file).flags = flags;
  return {};
}

Outcome ModelSystem::Resize(int, int file, uint32_t bytes) {
  ModelPipe& pipe = *At(file).pipe;
  uint64_t slots = RoundUp(bytes, options_.page_bytes);
  if (slots == 0) return {-EINVAL, false};
  if (Has(Fault::kRoundsSizeDown) && slots > 1 && slots * options_.page_bytes != bytes) slots /= 2;
  const bool is_growth = slots > pipe.max_slots;
  const bool may_exceed = options_.capabilities.sys_resource ||
                          (Has(Fault::kAdminIgnoresMaxSize) && options_.capabilities.sys_admin);
  if (is_growth && slots * options_.page_bytes > options_.limits.max_bytes && !may_exceed) {
    return {-EPERM, false};
  }
  const uint64_t charged = user_slots_ - pipe.max_slots + slots;
  if ((is_growth || Has(Fault::kShrinkAsksQuota)) && (IsOverSoft(charged) || IsOverHard(charged))) {
    return {-EPERM, false};
  }
  const uint64_t queued = static_cast<uint64_t>(QueuedBytes(0, file).value);
  const bool is_busy =
      Has(Fault::kBusyByBytes) ? queued > slots * options_.page_bytes : pipe.slots.size() > slots;
  if (is_busy) return {-EBUSY, false};
  if (Has(Fault::kResizeKeepsPosition) && pipe.slots.size() > 2) pipe.slots.pop_back();
  user_slots_ = charged;
  pipe.max_slots = slots;
  return {static_cast<int64_t>(slots * options_.page_bytes), false};
}

Outcome ModelSystem::Capacity(int, int file) {
  return {static_cast<int64_t>(At(file).pipe->max_slots * options_.page_bytes), false};
}

Outcome ModelSystem::QueuedBytes(int, int file) {
  const ModelPipe& pipe = *At(file).pipe;
  if (Has(Fault::kQueuedCountsSlots)) {
    return {static_cast<int64_t>(pipe.slots.size() * options_.page_bytes), false};
  }
  int64_t bytes = 0;
  for (const ModelSlot& slot : pipe.slots) bytes += static_cast<int64_t>(slot.Length());
  return {bytes, false};
}

uint16_t ModelSystem::MaskOf(const File& file) const {
  const ModelPipe& pipe = *file.pipe;
  int mask = 0;
  if (file.end == PipeEnd::kRead) {
    if (!pipe.slots.empty()) mask |= POLLIN;
    if (pipe.writers == 0 && (pipe.slots.empty() || !Has(Fault::kHangupOnlyWhenEmpty))) {
      mask |= POLLHUP;
    }
  } else {
    const bool has_room = Has(Fault::kWritableByBytes) && !pipe.slots.empty() &&
                          pipe.slots.back().bytes.size() < options_.page_bytes;
    if (!pipe.IsFull() || has_room) mask |= POLLOUT;
    if (pipe.readers == 0 && !Has(Fault::kNoErrorWithoutReaders)) mask |= POLLERR;
  }
  return static_cast<uint16_t>(mask);
}

Outcome ModelSystem::Poll(int, FileSet files, bool is_waiting, PollMasks& masks) {
  masks.fill(0);
  int64_t count = 0;
  for (size_t file = 0; file < kMaxFiles; ++file) {
    if ((files >> file & 1) == 0) continue;
    masks[file] = MaskOf(files_[file]);
    count += masks[file] != 0;
  }
  if (count == 0 && is_waiting) return {-EDEADLK, false};
  return {count, false};
}

Outcome ModelSystem::Watch(int, int) { return {-ENOSYS, false}; }

Outcome ModelSystem::TakeReady(int, PollMasks& masks) {
  masks.fill(0);
  return {-ENOSYS, false};
}

void ModelSystem::Reset() {
  for (int file = 0; file < kMaxFiles; ++file) {
    if (At(file).pipe != nullptr) Close(0, file);
  }
}

}  // namespace pipeyard::pipe::differential
