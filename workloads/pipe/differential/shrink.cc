#include "workloads/pipe/differential/shrink.h"

#include <algorithm>

namespace pipeyard::pipe::differential {
namespace {

// Above, all pairs are too many to try.
constexpr size_t kFewOperations = 30;

class Shrinker {
 public:
  Shrinker(std::vector<Operation> operations,
           const std::function<bool(const std::vector<Operation>&)>& fails, int max_runs)
      : operations_(std::move(operations)), fails_(fails), runs_left_(max_runs) {}

  std::vector<Operation> Run() {
    do {
      has_changed_ = false;
      for (size_t chunk = std::max<size_t>(operations_.size() / 2, 1);; chunk /= 2) {
        DropChunks(chunk);
        if (chunk == 1) break;
      }
      if (operations_.size() <= kFewOperations) DropPairs();
      for (size_t i = 0; i < operations_.size(); ++i) {
        SimplifyFile(i);
        SimplifyValue(i);
      }
    } while (has_changed_ && runs_left_ > 0);
    return std::move(operations_);
  }

 private:
  bool Try(std::vector<Operation> candidate) {
    if (runs_left_ <= 0) return false;
    --runs_left_;
    if (!fails_(candidate)) return false;
    operations_ = std::move(candidate);
    has_changed_ = true;
    return true;
  }

  void DropChunks(size_t chunk) {
    // From the end: what comes late depends on what came early.
    for (size_t end = operations_.size(); end > 0;) {
      const size_t begin = end > chunk ? end - chunk : 0;
      std::vector<Operation> candidate(operations_.begin(), operations_.begin() + Signed(begin));
      candidate.insert(candidate.end(), operations_.begin() + Signed(end), operations_.end());
      Try(std::move(candidate));
      end = begin;
    }
  }

  // What was written and what read it, an end opened and the call on it: neither goes alone.
  void DropPairs() {
    for (size_t second = operations_.size(); second-- > 1;) {
      for (size_t first = second; first-- > 0 && second < operations_.size();) {
        std::vector<Operation> candidate = operations_;
        candidate.erase(candidate.begin() + Signed(second));
        candidate.erase(candidate.begin() + Signed(first));
        Try(std::move(candidate));
      }
    }
  }

  // An earlier file does as well, where one was opened for this alone.
  void SimplifyFile(size_t i) {
    for (uint8_t file = 0; file < operations_[i].file; ++file) {
      std::vector<Operation> candidate = operations_;
      candidate[i].file = file;
      if (Try(std::move(candidate))) return;
    }
  }

  void SimplifyValue(size_t i) {
    const bool is_number =
        operations_[i].action == Action::kWrite || operations_[i].action == Action::kWriteQuietly ||
        operations_[i].action == Action::kRead || operations_[i].action == Action::kResize;
    if (!is_number) return;
    constexpr uint32_t kPage = 4096;
    for (bool is_smaller = true; is_smaller;) {
      is_smaller = false;
      const uint32_t value = operations_[i].value;
      const uint32_t candidates[] = {1, 2, 100, value / 2, value / kPage * kPage, value - 1, kPage};
      for (const uint32_t candidate : candidates) {
        if (candidate == 0 || candidate >= value) continue;
        std::vector<Operation> changed = operations_;
        changed[i].value = candidate;
        if (Try(std::move(changed))) {
          is_smaller = true;
          break;
        }
      }
    }
  }

  static std::ptrdiff_t Signed(size_t index) { return static_cast<std::ptrdiff_t>(index); }

  std::vector<Operation> operations_;
  const std::function<bool(const std::vector<Operation>&)>& fails_;
  int runs_left_;
  bool has_changed_ = false;
};

}  // namespace

std::vector<Operation> Shrink(std::vector<Operation> operations,
                              const std::function<bool(const std::vector<Operation>&)>& fails,
                              int max_runs) {
  return Shrinker(std::move(operations), fails, max_runs).Run();
}

std::vector<Operation> ShrinkFurther(
    std::vector<Operation> operations,
    const std::function<bool(const std::vector<Operation>&)>& fails,
    const GeneratorOptions& generator, uint64_t seed, int max_tries) {
  constexpr size_t kShort = 8;
  GeneratorOptions options = generator;
  options.num_operations = kShort;
  for (int i = 0; i < max_tries && operations.size() > kShort; ++i) {
    std::mt19937_64 random(ProgramSeed(~seed, static_cast<uint64_t>(i)));
    const std::vector<Operation> tried = GenerateOperations(random, options);
    if (fails(tried)) operations = Shrink(tried, fails);
  }
  return operations;
}

}  // namespace pipeyard::pipe::differential
