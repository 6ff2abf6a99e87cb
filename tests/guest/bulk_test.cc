// The engine's bulk allocation against the kernel's, page by page, with single steps before and
// after it that show where interleaving stood.
//
// vmalloc() is what allocates in bulk under the task's policy, and an mmap()able BPF array is
// vmalloc()ed memory that can be asked for.
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/guest/real_arenas.h"
#include "tests/guest/task_pages.h"

namespace pipeyard {
namespace {

using memory::BulkAlgorithm;
using memory::ParsePolicy;
using memory::Policy;

// Makes one bulk request of `pages`. Returns a file of all but the first page, which holds the
// array's own fields; -1 with errno. vmalloc() asks for at most 100 pages at a time.
int KernelBulk(uint64_t pages) {
  bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = static_cast<uint32_t>(HostPageBytes());
  attributes.max_entries = static_cast<uint32_t>(pages - 1);
  attributes.map_flags = BPF_F_MMAPABLE;
  return static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}

struct Sequence {
  std::vector<int> before, bulk, after;

  friend bool operator==(const Sequence&, const Sequence&) = default;
};

void PrintTo(const Sequence& sequence, std::ostream* out) {
  *out << testing::PrintToString(sequence.before) << " bulk "
       << testing::PrintToString(sequence.bulk) << " then "
       << testing::PrintToString(sequence.after);
}

class BulkTest : public RealArenasTest {
 protected:
  static constexpr uint64_t kAfter = 8;

  void SetUp() override {
    PageAllocatorOptions options;
    options.accounting.is_on = false;
    Create(options);
  }
  void TearDown() override { SetTaskPolicy({}); }

  // The kernel's, in the first of several attempts that is `expected`, else in the last: now and
  // then vmalloc()'s page tables take a page by the same policy. A wrong expectation fails all
  // attempts.
  static Sequence KernelSequence(const Sequence& expected, const Policy& policy, uint64_t before,
                                 uint64_t pages) {
    Sequence sequence;
    for (int attempt = 0; attempt < 10 && sequence != expected; ++attempt) {
      sequence = KernelSequenceOnce(policy, before, pages);
    }
    return sequence;
  }
  static Sequence KernelSequenceOnce(const Policy& policy, uint64_t before, uint64_t pages) {
    RamfsFile file;
    EXPECT_EQ(SetTaskPolicy(policy), 0);
    for (uint64_t i = 1; i <= before; ++i) EXPECT_TRUE(file.Write(i));
    const int bulk = KernelBulk(pages);
    for (uint64_t i = 1; i <= kAfter; ++i) EXPECT_TRUE(file.Write(before + i));
    // Before anything else is allocated: looking at pages takes page tables, by the same policy.
    SetTaskPolicy({});
    Sequence sequence;
    sequence.bulk = NodesOfFile(bulk, 0, pages - 1);
    ::close(bulk);
    std::vector<int> nodes = file.Nodes(before + kAfter);
    sequence.before.assign(nodes.begin(), nodes.begin() + static_cast<int>(before));
    sequence.after.assign(nodes.begin() + static_cast<int>(before), nodes.end());
    return sequence;
  }

  Sequence EngineSequence(const Policy& policy, uint64_t before, uint64_t pages,
                          BulkAlgorithm algorithm) {
    PageWorker worker = pages_->MakeWorker(0);
    worker.policy.SetPolicy(policy);
    Sequence sequence;
    std::vector<PageId> taken;
    const auto step = [&](std::vector<int>& nodes) {
      taken.push_back(pages_->Allocate(worker));
      nodes.push_back(KernelsNodeOf(taken.back()));
    };
    for (uint64_t i = 0; i < before; ++i) step(sequence.before);
    std::vector<PageId> bulk(pages);
    EXPECT_EQ(pages_->AllocateBulk(worker, bulk, {.algorithm = algorithm}), pages);
    for (uint64_t i = 1; i < pages; ++i) sequence.bulk.push_back(KernelsNodeOf(bulk[i]));
    for (uint64_t i = 0; i < kAfter; ++i) step(sequence.after);
    pages_->FreeBulk(worker, bulk);
    for (const PageId page : taken) pages_->Put(worker, page);
    return sequence;
  }
};

Sequence Sorted(Sequence sequence) {
  std::sort(sequence.bulk.begin(), sequence.bulk.end());
  return sequence;
}

TEST_F(BulkTest, InterleaveIsTheKernels) {
  ASSERT_TRUE(RunOn(worker_cpus_[0]));
  const Policy policy = ParsePolicy("interleave:" + AllNodes().ToString()).value();
  for (const uint64_t before : {0, 1, 2}) {
    for (const uint64_t pages : {2, 7, 64}) {
      const Sequence engine = EngineSequence(policy, before, pages, BulkAlgorithm::kSplitCarry);

      EXPECT_EQ(engine, KernelSequence(engine, policy, before, pages))
          << before << " steps before " << pages << " pages";
    }
  }
}

// Split carry is what the kernel does, page by page. The others give each node as many pages, and
// go on from the same place.
TEST_F(BulkTest, WeightedInterleaveIsTheKernels) {
  ASSERT_TRUE(RunOn(worker_cpus_[0]));
  const Policy policy = ParsePolicy("weighted-interleave:" + AllNodes().ToString()).value();
  for (std::vector<int> weights : {std::vector<int>{3, 1, 2}, {2, 5, 3}, {10, 7, 1}}) {
    weights.resize(topology_.nodes().size());
    ASSERT_TRUE(WriteHostWeights(weights));
    pages_->SetWeights(memory::ReadHostWeights(numa::HostFiles(), AllNodes()).value().table);
    for (const uint64_t before : {0, 1, 2, 4, 9}) {
      for (const uint64_t pages : {2, 3, 6, 14, 24, 64, 99}) {
        SCOPED_TRACE("weights " + testing::PrintToString(weights) + ", " + std::to_string(before) +
                     " steps before " + std::to_string(pages) + " pages");
        const Sequence split = EngineSequence(policy, before, pages, BulkAlgorithm::kSplitCarry);

        EXPECT_EQ(split, KernelSequence(split, policy, before, pages));
        for (const auto other : {BulkAlgorithm::kFoldedCarry, BulkAlgorithm::kSingleStep}) {
          EXPECT_EQ(Sorted(EngineSequence(policy, before, pages, other)), Sorted(split));
        }
      }
    }
  }
}

}  // namespace
}  // namespace pipeyard
