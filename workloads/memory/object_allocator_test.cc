#include "workloads/memory/object_allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

TEST(ObjectAllocator, GivesObjectsOfEverySizeThatDoNotOverlap) {
  ObjectFixture f(1, {0});
  std::vector<std::pair<ObjectRef, uint32_t>> refs;
  for (uint32_t size : {1u, 64u, 65u, 96u, 128u, 168u, 192u, 256u, 320u, 640u, 1280u, 2560u, 5120u,
                        8192u, 8193u, 10240u, 40960u}) {
    for (int i = 0; i < 8; ++i) {
      const ObjectRef ref = f.objects->Allocate(f.workers[0], size);
      ASSERT_NE(ref, kNoObject) << size;
      std::memset(f.objects->Address(ref), static_cast<int>(refs.size()), size);
      refs.emplace_back(ref, size);
    }
  }
  for (size_t i = 0; i < refs.size(); ++i) {
    const auto* bytes = f.objects->Address<unsigned char>(refs[i].first);
    EXPECT_EQ(bytes[0], static_cast<unsigned char>(i));
    EXPECT_EQ(bytes[refs[i].second - 1], static_cast<unsigned char>(i));
  }
  EXPECT_EQ(f.Census().num_live + f.Census().num_blocks, refs.size());
  f.ExpectPagesConserved();

  for (const auto& [ref, size] : refs) f.objects->Free(f.workers[0], ref, size);
  EXPECT_EQ(f.Census().live.size(), 0u);
  f.ExpectPagesConserved();
}

TEST(ObjectAllocator, AFreedObjectIsTheNextOne) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    ObjectFixture f(1, {0}, {.form = form});
    const ObjectRef object = f.objects->Allocate(f.workers[0], 192);
    f.objects->Free(f.workers[0], object, 192);

    EXPECT_EQ(f.objects->Allocate(f.workers[0], 192), object) << SlabFormName(form);
  }
}

TEST(ObjectAllocator, APoppedObjectIsCountedAsFastAndNothingElse) {
  ObjectFixture f(1, {0});
  f.Free(0, f.Allocate(0, 1, 192), 192);
  const uint64_t before = f.Count(ObjectCounter::kFastAllocations);
  const uint64_t slabs = f.Count(ObjectCounter::kNewSlabsRefill);

  f.Free(0, f.Allocate(0, 1, 192), 192);

  EXPECT_EQ(f.Count(ObjectCounter::kFastAllocations), before + 1);
  EXPECT_EQ(f.Count(ObjectCounter::kFastFrees), 2u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill), slabs);
  EXPECT_EQ(f.Count(ObjectCounter::kSlowAllocations), 0u);
}

TEST(ObjectAllocator, AnObjectIsChargedWithTheKernelsExtraWord) {
  ObjectFixture f(1, {0});
  const uint64_t before = f.pages->controller().used_bytes();
  const std::vector<ObjectRef> refs = f.Allocate(0, 100, 168);

  EXPECT_EQ(f.pages->controller().used_bytes() - before, 100u * (192 + 8));

  f.Free(0, refs, 168);
  EXPECT_EQ(f.pages->controller().used_bytes(), before);
}

TEST(ObjectAllocator, ALargeObjectIsChargedByPages) {
  ObjectFixture f(1, {0});
  const uint64_t before = f.pages->controller().used_bytes();
  const ObjectRef ring = f.objects->Allocate(f.workers[0], 10240);

  EXPECT_EQ(f.pages->controller().used_bytes() - before, 4u * 4096);

  f.objects->Free(f.workers[0], ring, 10240);
  EXPECT_EQ(f.pages->controller().used_bytes(), before);
}

TEST(ObjectAllocator, ObjectsOverTheLimitAreRefusedAndNothingIsTaken) {
  PageAllocatorOptions pages;
  pages.accounting.limit_bytes = 64 * 4096;
  ObjectFixture f(1, {0}, {}, 2048, pages);
  std::vector<ObjectRef> refs;
  for (ObjectRef ref; (ref = f.objects->Allocate(f.workers[0], 192)) != kNoObject;) {
    refs.push_back(ref);
    ASSERT_LE(refs.size(), 64u * 4096 / 200);
  }

  EXPECT_GT(refs.size(), 64u * 4096 / 200 * 9 / 10);
  EXPECT_EQ(f.Count(ObjectCounter::kChargesRefused), 1u);
  EXPECT_EQ(f.Census().num_live, refs.size());

  f.Free(0, refs, 192);
  EXPECT_EQ(f.pages->controller().used_bytes(), 0u);
  EXPECT_NE(f.objects->Allocate(f.workers[0], 192), kNoObject);
}

TEST(ObjectAllocator, WithAccountingOffNothingIsCharged) {
  PageAllocatorOptions pages;
  pages.accounting.is_on = false;
  ObjectFixture f(1, {0}, {}, 2048, pages);
  f.Allocate(0, 1000, 192);

  EXPECT_EQ(f.pages->controller().charged_bytes(), 0u);
  EXPECT_EQ(f.Census().num_live, 1000u);
}

TEST(ObjectAllocator, TheHistogramCountsLiveObjectsByNode) {
  ObjectFixture f(3, {0, 1});
  f.Allocate(0, 10, 192, 0);
  f.Allocate(0, 7, 192, 2);
  f.Allocate(1, 5, 640, 1);
  f.Allocate(1, 3, 10240, 2);
  const ObjectCensus census = f.Census();

  EXPECT_EQ(census.live_by_node[0], 10u);
  EXPECT_EQ(census.live_by_node[1], 5u);
  EXPECT_EQ(census.live_by_node[2], 10u);
  EXPECT_EQ(census.live_by_class[SlabClassIndex(192)][2], 7u);
  EXPECT_EQ(census.live_by_class[SlabClassIndex(640)][1], 5u);
  EXPECT_EQ(census.num_blocks, 3u);
}

TEST(ObjectAllocator, ADefragRatioOutsideItsRangeIsRefused) {
  RegionLayout layout;
  PageAllocatorOptions options;
  options.arena_bytes = 1 << 20;
  options.worker_cpus = {0};
  const PageAllocator::Plan plan = *PageAllocator::AddTo(layout, options, Machine(1));

  EXPECT_EQ(ObjectAllocator::AddTo(layout, {.defrag_ratio = 101}, plan, options).status().message(),
            "defrag_ratio 101: must be from 0 to 100");
  EXPECT_FALSE(ObjectAllocator::AddTo(layout, {.defrag_ratio = -1}, plan, options).ok());
}

// 19 classes of objects would not fit what a worker has of 14.
TEST(ObjectAllocator, PagesWithMoreClassesThanAWorkerHasAreRefused) {
  for (const auto& [page_bytes, is_ok] : {std::pair{64 * 1024, true}, {2 << 20, false}}) {
    RegionLayout layout;
    PageAllocatorOptions options;
    options.page_bytes = static_cast<uint64_t>(page_bytes);
    options.arena_bytes = 8 << 20;
    options.worker_cpus = {0};
    const PageAllocator::Plan plan = *PageAllocator::AddTo(layout, options, Machine(1));

    EXPECT_EQ(ObjectAllocator::AddTo(layout, {}, plan, options).ok(), is_ok) << page_bytes;
  }
}

TEST(ObjectAllocator, FormsHaveNamesThatReadBack) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab})
    EXPECT_EQ(*ParseSlabForm(SlabFormName(form)), form);
  EXPECT_EQ(ParseSlabForm("slub").status().message(), "slab \"slub\": must be sheaves or cpu-slab");
}

TEST(ObjectAllocator, AWorkersHandleMadeAgainFindsItsSheaves) {
  ObjectFixture f(1, {0});
  f.Free(0, f.Allocate(0, 10, 192), 192);
  const uint64_t slabs = f.Count(ObjectCounter::kNewSlabsRefill);
  f.workers[0] = f.objects->MakeWorker(0, *f.page_workers[0]);
  f.Allocate(0, 10, 192);

  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill), slabs);
  EXPECT_EQ(f.Census().num_live, 10u);
}

}  // namespace
}  // namespace pipeyard::memory
