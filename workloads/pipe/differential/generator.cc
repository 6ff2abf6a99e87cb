#include "workloads/pipe/differential/generator.h"

#include <algorithm>
#include <optional>

#include "workloads/pipe/differential/file_table.h"
#include "workloads/pipe/differential/stream.h"

namespace pipeyard::pipe::differential {
namespace {

// What a program is like; drawn once for each.
struct Character {
  uint32_t write_weight;
  uint32_t read_weight;
  uint32_t control_weight;  // everything else
  uint32_t tiny_weight;     // sizes up to 200
  uint32_t edge_weight;     // sizes next to where something changes
  uint32_t middle_weight;   // up to three pages
  uint32_t large_weight;    // up to more than the pipe holds
  uint32_t num_pipes;
  bool is_blocking;
};

class Generator {
 public:
  Generator(std::mt19937_64& random, const GeneratorOptions& options)
      : random_(random), options_(options) {
    character_.write_weight = 20 + Draw(60);
    character_.read_weight = 20 + Draw(60);
    character_.control_weight = Draw(4) == 0 ? 40 : 6 + Draw(12);
    character_.tiny_weight = 1 + Draw(8);
    character_.edge_weight = 1 + Draw(8);
    character_.middle_weight = 1 + Draw(8);
    character_.large_weight = Draw(3) == 0 ? 3 : 0;
    character_.num_pipes = Draw(4) == 0 ? 2 : 1;
    character_.is_blocking = options.num_actors > 1 || Draw(6) == 0;
  }

  std::vector<Operation> Generate() {
    operations_.reserve(options_.num_operations);
    while (operations_.size() < options_.num_operations) {
      if (CountPipes() < character_.num_pipes && (table_.OpenFiles() == 0 || Draw(20) == 0)) {
        Create();
        continue;
      }
      const uint32_t drawn =
          Draw(character_.write_weight + character_.read_weight + character_.control_weight);
      if (drawn < character_.write_weight) {
        Transfer(PipeEnd::kWrite);
      } else if (drawn < character_.write_weight + character_.read_weight) {
        Transfer(PipeEnd::kRead);
      } else {
        Control();
      }
    }
    return std::move(operations_);
  }

 private:
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  void Add(Action action, int file = 0, uint32_t value = 0) {
    const auto actor = static_cast<uint8_t>(
        options_.num_actors > 1 ? Draw(static_cast<uint32_t>(options_.num_actors)) : 0);
    operations_.push_back({action, actor, static_cast<uint8_t>(file), value});
  }

  // An open file, of the given end where one is given; -1 where there is none.
  int DrawFile(std::optional<PipeEnd> end = std::nullopt) {
    int found[kMaxFiles];
    uint32_t count = 0;
    for (int file = 0; file < kMaxFiles; ++file) {
      if (table_.IsOpen(file) && (!end || table_.file(file).end == *end)) found[count++] = file;
    }
    return count == 0 ? -1 : found[Draw(count)];
  }

  uint32_t CountPipes() const {
    uint32_t count = 0;
    for (int file = 0; file < kMaxFiles; ++file) {
      bool is_first = table_.IsOpen(file);
      for (int other = 0; other < file; ++other) {
        is_first &= !table_.IsOpen(other) || table_.file(other).pipe != table_.file(file).pipe;
      }
      count += is_first;
    }
    return count;
  }

  int FreePlace(int width) const {
    for (int file = 0; file + width <= kMaxFiles; ++file) {
      if (!table_.IsOpen(file) && (width == 1 || !table_.IsOpen(file + 1))) return file;
    }
    return -1;
  }

  void Create() {
    const int file = FreePlace(2);
    if (file < 0) return Control();
    const bool is_nonblocking = !character_.is_blocking || Draw(2) == 0;
    Add(Action::kCreate, file, is_nonblocking);
    table_.Create(file, {.is_nonblocking = is_nonblocking});
    slots_ = 16;
    if (Draw(3) == 0) return;
    static constexpr uint32_t kSlots[] = {1, 1, 2, 2, 4, 16, 32, 256};
    slots_ = kSlots[Draw(std::size(kSlots))];
    Add(Action::kResize, file, slots_ * options_.page_bytes);
  }

  uint32_t DrawSize() {
    const Character& c = character_;
    const uint32_t page = options_.page_bytes;
    uint32_t drawn = Draw(c.tiny_weight + c.edge_weight + c.middle_weight + c.large_weight);
    if (drawn < c.tiny_weight) return Draw(200);
    drawn -= c.tiny_weight;
    if (drawn < c.edge_weight) {
      const uint32_t edges[] = {1,        2,        page / 2, page,          page,
                                2 * page, 3 * page, 8 * page, slots_ * page, 4096};
      // Larger ones are left to the programs that like them.
      const uint32_t edge = edges[Draw(std::size(edges))];
      return std::min(edge, 16 * page) + Draw(5) - (edge > 2 ? 2 : 0);
    }
    drawn -= c.edge_weight;
    if (drawn < c.middle_weight) return Draw(3 * page);
    return std::min<uint32_t>(Draw((slots_ + 4) * page), kMaxTransfer);
  }

  void Transfer(PipeEnd end) {
    const int file = DrawFile(end);
    if (file < 0) return Control();
    const bool is_quiet = end == PipeEnd::kWrite && options_.can_write_quietly && Draw(16) == 0;
    const Action write = is_quiet ? Action::kWriteQuietly : Action::kWrite;
    Add(end == PipeEnd::kRead ? Action::kRead : write, file, DrawSize());
  }

  void Open(PipeEnd end) {
    const int place = FreePlace(1);
    const int file = DrawFile();
    if (place < 0 || file < 0) return;
    Add(end == PipeEnd::kRead ? Action::kOpenReader : Action::kOpenWriter, file,
        static_cast<uint32_t>(place));
    table_.Open(file, end, place);
    if (character_.is_blocking && Draw(2) == 0) Add(Action::kSetNonblocking, place, 0);
  }

  uint32_t DrawCapacity() {
    const uint32_t page = options_.page_bytes;
    switch (Draw(8)) {
      case 0:
        return Draw(3 * page);
      case 1: {
        static constexpr uint32_t kEdges[] = {0, 1u << 31, (1u << 31) + 1, UINT32_MAX};
        const uint32_t edge = kEdges[Draw(std::size(kEdges))];
        return edge == 1u << 31 && options_.max_pipe_bytes < edge ? options_.max_pipe_bytes : edge;
      }
      case 2:
        return std::min<uint32_t>(options_.max_pipe_bytes, (1u << 20) - 1 + Draw(3));
      default: {
        const uint32_t slots = 1u << Draw(Draw(3) == 0 ? 9 : 5);
        return std::min(options_.max_pipe_bytes, slots * page - Draw(2) * Draw(page));
      }
    }
  }

  void Control() {
    const int file = DrawFile();
    if (file < 0) return Create();
    switch (Draw(20)) {
      case 0:
      case 1: {
        Add(Action::kClose, file);
        table_.Close(file);
        break;
      }
      case 2:
      case 3:
        return Open(PipeEnd::kRead);
      case 4:
        return Open(PipeEnd::kWrite);
      case 5:
      case 6: {
        const bool is_nonblocking = !character_.is_blocking || Draw(2) == 0;
        return Add(Action::kSetNonblocking, file, is_nonblocking);
      }
      case 7:
      case 8:
      case 9: {
        const int writer = DrawFile(PipeEnd::kWrite);
        return Add(Action::kSetPacket, writer < 0 ? file : writer, Draw(2));
      }
      case 10:
      case 11:
      case 12:
      case 13:
        return Add(Action::kResize, file, DrawCapacity());
      case 14:
        return Add(Draw(2) == 0 ? Action::kCapacity : Action::kQueuedBytes, file);
      case 15:
        if (options_.has_polls) Add(Action::kPoll, 0, table_.OpenFiles());
        return;
      case 16:
        if (options_.has_watches &&
            (options_.has_write_watches || table_.file(file).end == PipeEnd::kRead)) {
          Add(Action::kWatch, file);
        }
        return;
      case 17:
      case 18:
        if (options_.has_watches) Add(Action::kTakeReady);
        return;
      default:
        if (options_.num_actors > 1) {
          if (options_.has_polls && Draw(2) == 0) {
            Add(Action::kWaitPoll, 0, FileSet{1} << file);
          } else {
            Add(Action::kInterrupt);
          }
        }
    }
  }

  std::mt19937_64& random_;
  const GeneratorOptions& options_;
  Character character_{};
  FileTable table_;
  uint32_t slots_ = 16;  // of the newest pipe, about
  std::vector<Operation> operations_;
};

}  // namespace

std::vector<Operation> GenerateOperations(std::mt19937_64& random,
                                          const GeneratorOptions& options) {
  return Generator(random, options).Generate();
}

// Source: Steele, Lea, Flood (2014), SplitMix64.
uint64_t ProgramSeed(uint64_t seed, uint64_t index) {
  uint64_t mixed = seed + (index + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace pipeyard::pipe::differential
