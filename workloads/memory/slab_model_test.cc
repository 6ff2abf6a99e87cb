// Random operations against a model, and failures of every page allocation.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

// What is live, with a mark at both ends of each object.
class Model {
 public:
  explicit Model(ObjectFixture& f) : f_(f) {}

  void Add(ObjectRef ref, uint32_t size) {
    const uint64_t bytes = ObjectAllocator::ClassBytes(size, f_.pages->page_bytes());
    const auto after = live_.lower_bound(ref);
    ASSERT_TRUE(after == live_.end() || ref + bytes <= after->first) << "overlaps its successor";
    if (after != live_.begin()) {
      const auto before = std::prev(after);
      ASSERT_LE(before->first + before->second.bytes, ref) << "overlaps its predecessor";
    }
    live_[ref] = {size, bytes, next_mark_};
    *f_.objects->Address<uint32_t>(ref) = next_mark_;
    *f_.objects->Address<uint32_t>(ref + bytes - 4) = next_mark_;
    next_mark_ += 1;
  }
  // Frees the `index`-th live object as `worker`.
  void Free(size_t worker, size_t index) {
    const auto it = std::next(live_.begin(), static_cast<std::ptrdiff_t>(index));
    const Object object = it->second;
    ASSERT_EQ(*f_.objects->Address<uint32_t>(it->first), object.mark);
    ASSERT_EQ(*f_.objects->Address<uint32_t>(it->first + object.bytes - 4), object.mark);
    f_.objects->Free(f_.workers[worker], it->first, object.size);
    live_.erase(it);
  }
  size_t num_live() const { return live_.size(); }

  void Check() const {
    const ObjectCensus census = f_.Census();
    std::vector<ObjectRef> refs;
    uint64_t charged = 0;
    for (const auto& [ref, object] : live_) {
      refs.push_back(ref);
      charged +=
          object.size <= MaxSlabBytes(f_.pages->page_bytes()) ? object.bytes + 8 : object.bytes;
    }
    ASSERT_EQ(census.live, refs);
    ASSERT_EQ(f_.pages->controller().used_bytes(), charged);
    f_.ExpectPagesConserved();
  }

 private:
  struct Object {
    uint32_t size;
    uint64_t bytes;
    uint32_t mark;
  };
  ObjectFixture& f_;
  std::map<ObjectRef, Object> live_;
  uint32_t next_mark_ = 1;
};

constexpr uint32_t kSizes[] = {40,   80,   128,  168,  232,   320,  640,
                               1280, 2560, 5120, 8192, 10240, 40960};

struct Case {
  const char* name;
  SlabForm form;
  bool is_strict;
  int defrag_ratio;
  const char* policies[2];
};
constexpr Case kCases[] = {
    {"sheaves", SlabForm::kSheaves, false, 100, {"default", "interleave:0-2"}},
    {"sheaves, strict", SlabForm::kSheaves, true, 100, {"weighted-interleave:0=3,2=1", "bind:1"}},
    {"sheaves, no reuse", SlabForm::kSheaves, false, 0, {"preferred:2", "preferred-many:1,2"}},
    {"cpu-slab", SlabForm::kCpuSlab, false, 100, {"default", "interleave:0-2"}},
    {"cpu-slab, strict", SlabForm::kCpuSlab, true, 50, {"bind:0", "interleave:1,2"}},
};

void RunRandomly(const Case& c, uint64_t seed, int num_steps, uint64_t num_pages) {
  ObjectFixture f(3, {0, 1, 1, 2},
                  {.form = c.form,
                   .is_strict_policy = c.is_strict,
                   .defrag_ratio = c.defrag_ratio,
                   .seed = seed},
                  num_pages);
  f.SetPolicy(0, c.policies[0]);
  f.SetPolicy(1, c.policies[1]);
  Model model(f);
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t bound) { return random() % bound; };
  bool is_growing = true;
  for (int i = 0; i < num_steps; ++i) {
    if (below(200) == 0) is_growing = !is_growing;
    const size_t worker = below(f.workers.size());
    if (below(100) < (is_growing ? 65u : 35u) || model.num_live() == 0) {
      const uint32_t size = kSizes[std::min(below(std::size(kSizes)), below(std::size(kSizes)))];
      const numa::NodeId node = below(3) == 0 ? static_cast<int>(below(3)) : numa::kNoNode;
      const ObjectRef ref = f.objects->Allocate(f.workers[worker], size, node);
      if (ref != kNoObject) model.Add(ref, size);
      // A named node has the memory as long as no page allocation fails.
      if (ref != kNoObject && node != numa::kNoNode && num_pages > 4096) {
        ASSERT_EQ(f.objects->NodeOf(ref), node);
      }
    } else {
      model.Free(worker, below(model.num_live()));
    }
    if (below(500) == 0) f.objects->Flush(f.workers[worker]);
    if (i % 1000 == 999) model.Check();
    if (::testing::Test::HasFatalFailure()) return;
  }
  while (model.num_live() != 0) model.Free(below(f.workers.size()), 0);
  model.Check();
}

TEST(SlabModel, RandomOperationsKeepEveryObjectInOnePlace) {
  const uint64_t seed = TestSeed(20);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RunRandomly(c, seed, 20'000, 8192);
  }
}

TEST(SlabModel, RandomOperationsThatRunOutOfMemoryLoseNothing) {
  const uint64_t seed = TestSeed(21);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    RunRandomly(c, seed, 20'000, 96);
  }
}

// A short life with every path: refills, named nodes, blocks, frees from elsewhere, flushes.
void LiveShortly(ObjectFixture& f, Model& model) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const size_t worker = random() % f.workers.size();
    if (random() % 3 != 0 || model.num_live() == 0) {
      const uint32_t size = kSizes[random() % std::size(kSizes)];
      const numa::NodeId node = random() % 2 == 0 ? static_cast<int>(random() % 2) : numa::kNoNode;
      const ObjectRef ref = f.objects->Allocate(f.workers[worker], size, node);
      if (ref != kNoObject) model.Add(ref, size);
    } else {
      model.Free(worker, random() % model.num_live());
    }
    if (i % 100 == 99) f.objects->Flush(f.workers[worker]);
  }
}

TEST(SlabModel, AFailureOfAnyPageAllocationLosesNoObject) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    uint64_t first = 1;
    for (bool is_done = false; !is_done; ++first) {
      ObjectFixture f(2, {0, 1}, {.form = form}, 300);
      Model model(f);
      AllocationFailures failures;
      failures.first = first;
      f.pages->InjectFailures(&failures);
      LiveShortly(f, model);
      f.pages->InjectFailures(nullptr);
      is_done = failures.num_allocations.load() < first;
      model.Check();
      ASSERT_FALSE(HasFatalFailure()) << SlabFormName(form) << ", allocation " << first;
      while (model.num_live() != 0) model.Free(0, 0);
      model.Check();
    }
    EXPECT_GT(first, 40u);
  }
}

TEST(SlabModel, PageAllocationsThatAllFailLoseNoObject) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    for (const uint64_t first : {uint64_t{1}, uint64_t{10}, uint64_t{30}}) {
      ObjectFixture f(2, {0, 1}, {.form = form}, 300);
      Model model(f);
      AllocationFailures failures;
      failures.first = first;
      failures.count = UINT64_MAX;
      f.pages->InjectFailures(&failures);
      LiveShortly(f, model);
      model.Check();
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_GT(f.Count(ObjectCounter::kFailures), 0u);
    }
  }
}

}  // namespace
}  // namespace pipeyard::memory
