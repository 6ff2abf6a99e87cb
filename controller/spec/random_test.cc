// Sweeps broken at random: reading ends, tells places, and never takes what it complains about.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/testing/golden.h"
#include "controller/spec/sweep.h"

namespace pipeyard::spec {
namespace {

constexpr int kRounds = 3000;

uint64_t Seed() {
  const char* const given = std::getenv("PIPEYARD_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("PIPEYARD_SEED=%llu repeats this\n", static_cast<unsigned long long>(seed));
  return seed;
}

std::vector<std::string> Corpus() {
  const std::string root = std::string(PIPEYARD_SOURCE_DIR) + "/";
  return {pipeyard::testing::ReadFile(root + "workloads/sweeps/prealloc.yaml"),
          pipeyard::testing::ReadFile(root + "workloads/sweeps/quick/prealloc.yaml"),
          pipeyard::testing::ReadFile(root + "workloads/sweeps/hackbench-command.yaml"),
          pipeyard::testing::ReadFile(root + "controller/spec/testdata/broken.yaml"),
          pipeyard::testing::ReadFile(root + "controller/spec/testdata/design.yaml")};
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Mutate(std::string text, const std::vector<std::string>& corpus) {
    const int steps = 1 + Below(6);
    for (int i = 0; i < steps; ++i) Step(text, corpus);
    return text;
  }

  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void Step(std::string& text, const std::vector<std::string>& corpus) {
    static const std::vector<std::string> kPieces = {"[",
                                                     "]",
                                                     "{",
                                                     "}",
                                                     ": ",
                                                     ",",
                                                     "\n",
                                                     "  ",
                                                     "- ",
                                                     "\"",
                                                     "'",
                                                     "#",
                                                     "&a ",
                                                     "*a",
                                                     "!!str ",
                                                     "|\n",
                                                     "---\n",
                                                     "~",
                                                     "null",
                                                     "0",
                                                     "-1",
                                                     "99999999999999999999",
                                                     "1e9",
                                                     "64KiB",
                                                     "10s",
                                                     "2%",
                                                     "\t",
                                                     "\xff",
                                                     std::string(1, '\0'),
                                                     "engine.",
                                                     "target: ",
                                                     "zip: [[writers, readers]]\n",
                                                     "\xc3\xbc",
                                                     "exclude: [ { writers: 1 } ]\n",
                                                     "interleave:0,1",
                                                     "0-3,8",
                                                     "? ",
                                                     "<<: ",
                                                     "%YAML 1.2\n"};
    const size_t at = Below(text.size() + 1);
    const size_t length = Below(std::min<size_t>(40, text.size() - at + 1));
    switch (Below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[Below(kPieces.size())]);
        break;
      case 2:
        text.insert(at, text.substr(Below(text.size() + 1), length));
        break;
      case 3: {
        const std::string& other = corpus[Below(corpus.size())];
        const size_t start = Below(other.size() + 1);
        text.replace(at, length, other.substr(start, Below(60)));
        break;
      }
      default:
        if (at < text.size()) text[at] = static_cast<char>(Below(256));
    }
  }

  std::mt19937_64 random_;
};

TEST(RandomSweep, IsReadToItsEnd) {
  Mutator mutator(Seed());
  const std::vector<std::string> corpus = Corpus();
  for (const std::string& text : corpus) ASSERT_FALSE(text.empty());
  int num_read = 0;
  int num_refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string yaml = mutator.Mutate(corpus[mutator.Below(corpus.size())], corpus);
    std::vector<std::string> sets;
    if (mutator.Below(3) == 0) sets.push_back(mutator.Mutate("writers=[1, 2]", corpus));

    const ReadResult result = ReadSweep(yaml, sets);

    if (result.ok()) {
      ++num_read;
      EXPECT_FALSE(result.sweep.variants.empty()) << yaml;
    } else {
      ++num_refused;
    }
    for (const Problem& problem : result.problems) {
      EXPECT_FALSE(problem.what.empty()) << yaml;
      EXPECT_EQ(problem.line == 0, problem.column == 0);
      if (sets.empty()) {
        EXPECT_GT(problem.line, 0u) << problem.what << "\n" << yaml;
      }
      const auto lines = static_cast<uint32_t>(std::count(yaml.begin(), yaml.end(), '\n'));
      EXPECT_LE(problem.line, lines + 1) << problem.what;
    }
  }
  EXPECT_GT(num_read, 0);
  EXPECT_GT(num_refused, 0);
}

}  // namespace
}  // namespace pipeyard::spec
