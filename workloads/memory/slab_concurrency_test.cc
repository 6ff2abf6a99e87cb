// Several workers at once, as threads and as processes, and workers that die.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <random>
#include <thread>

#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

struct Object {
  ObjectRef ref;
  uint32_t size;
};

// Objects on their way from one worker to another.
class Mailbox {
 public:
  void Put(Object object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(object);
  }
  bool Take(Object& object) {
    const std::lock_guard lock(mutex_);
    if (objects_.empty()) return false;
    object = objects_.back();
    objects_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Object> objects_;
};

constexpr uint32_t kSizes[] = {168, 192, 320, 640, 5120, 10240};

// Allocates and frees as `worker`; some objects are freed by others. Each object carries its own
// offset, so that one that was given to two workers is found.
bool Churn(ObjectFixture& f, size_t worker, uint64_t seed, int num_steps, Mailbox* mailbox) {
  std::mt19937_64 random(seed + worker);
  std::vector<Object> mine;
  bool is_sound = true;
  auto free = [&](Object object) {
    is_sound &= *f.objects->Address<uint64_t>(object.ref) == (object.ref ^ object.size);
    *f.objects->Address<uint64_t>(object.ref) = 0;
    f.objects->Free(f.workers[worker], object.ref, object.size);
  };
  for (int i = 0; i < num_steps; ++i) {
    const uint64_t dice = random() % 100;
    if (dice < 55) {
      const uint32_t size = kSizes[std::min(random() % 6, random() % 6)];
      const numa::NodeId node = random() % 4 == 0 ? static_cast<int>(random() % 2) : numa::kNoNode;
      const ObjectRef ref = f.objects->Allocate(f.workers[worker], size, node);
      if (ref == kNoObject) continue;
      *f.objects->Address<uint64_t>(ref) = ref ^ size;
      mine.push_back({ref, size});
    } else if (dice < 65 && mailbox != nullptr && !mine.empty()) {
      mailbox->Put(mine.back());
      mine.pop_back();
    } else if (Object object; dice < 75 && mailbox != nullptr && mailbox->Take(object)) {
      free(object);
    } else if (!mine.empty()) {
      free(mine.back());
      mine.pop_back();
    }
  }
  for (const Object object : mine) free(object);
  return is_sound;
}

TEST(SlabWorkers, ThreadsThatFreeEachOthersObjectsLoseNone) {
  const uint64_t seed = TestSeed(30);
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    // Little memory, so that reclaim takes part.
    ObjectFixture f(2, {0, 0, 1, 1}, {.form = form}, 512);
    Mailbox mailbox;
    std::vector<std::thread> threads;
    std::atomic<bool> is_sound = true;
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (!Churn(f, i, seed, 30'000, &mailbox)) is_sound = false;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(is_sound);
    for (Object object; mailbox.Take(object);)
      f.objects->Free(f.workers[0], object.ref, object.size);

    EXPECT_EQ(f.Census().live.size(), 0u) << SlabFormName(form);
    EXPECT_EQ(f.pages->controller().used_bytes(), 0u);
    f.ExpectPagesConserved();
  }
}

// Runs `body` in a child; its exit status.
template <typename Body>
pid_t Fork(const Body& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  return pid;
}

// A process that ends while it holds `mutex`.
pid_t DieHolding(SharedMutex& mutex) {
  return Fork([&]() NO_THREAD_SAFETY_ANALYSIS {
    static_cast<void>(mutex.Lock());
    return true;
  });
}

int StatusOf(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SlabWorkers, ProcessesShareTheAllocator) {
  const uint64_t seed = TestSeed(31);
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    ObjectFixture f(2, {0, 1, 0, 1}, {.form = form}, 1024);
    // Each child frees what the parent allocated, and leaves as much for the parent to free.
    constexpr size_t kObjects = 300;
    const std::vector<ObjectRef> refs = f.Allocate(0, 3 * kObjects, 192);
    std::vector<pid_t> children;
    for (size_t i = 1; i < 4; ++i) {
      children.push_back(Fork([&] {
        const bool is_sound = Churn(f, i, seed, 20'000, nullptr);
        f.Free(i, {refs.begin() + (i - 1) * kObjects, refs.begin() + i * kObjects}, 192);
        f.Allocate(i, kObjects, 640);
        return is_sound;
      }));
    }
    for (const pid_t child : children) EXPECT_EQ(StatusOf(child), 0);

    const ObjectCensus census = f.Census();
    EXPECT_EQ(census.num_live, 3 * kObjects) << SlabFormName(form);
    f.Free(0, census.live, 640);
    EXPECT_EQ(f.Census().live.size(), 0u);
    EXPECT_EQ(f.pages->controller().used_bytes(), 0u);
    f.ExpectPagesConserved();
  }
}

TEST(SlabWorkers, ADeathInsideAPartialListIsReported) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    ObjectFixture f(2, {0, 1}, {.form = form});
    f.MakePartialSlabs(0, 0, 192, 8);
    EXPECT_EQ(StatusOf(DieHolding(f.objects->lists_for_test().List(SlabClassIndex(192), 0).mutex)),
              0);
    EXPECT_FALSE(f.objects->is_broken());

    f.objects->Allocate(f.workers[1], 192, 0);
    EXPECT_TRUE(f.objects->is_broken());
    // From now on nobody gets one past the worker's own lists, in any process.
    EXPECT_EQ(f.objects->Allocate(f.workers[1], 320, 0), kNoObject);
    EXPECT_EQ(StatusOf(Fork([&] {
                return f.objects->is_broken() &&
                       f.objects->Allocate(f.workers[0], 320, 1) == kNoObject;
              })),
              0);
    EXPECT_EQ(f.objects->TakeCensus().status().message(),
              "object census: a worker died holding the lock of a partial list or a barn");
  }
}

TEST(SlabWorkers, ADeathThatNobodyNoticedIsFoundByTheCensus) {
  ObjectFixture f(1, {0});
  EXPECT_EQ(StatusOf(DieHolding(f.objects->lists_for_test().List(SlabClassIndex(192), 0).mutex)),
            0);
  EXPECT_EQ(f.objects->TakeCensus().status().code(), StatusCode::kInternal);
}

TEST(SlabWorkers, ADeathInsideABarnIsReported) {
  ObjectFixture f(1, {0});
  EXPECT_EQ(StatusOf(DieHolding(f.objects->barn_lock_for_test(SlabClassIndex(192), 0))), 0);
  // The worker that finds out still gets its object from the slabs.
  EXPECT_NE(f.objects->Allocate(f.workers[0], 192), kNoObject);
  EXPECT_TRUE(f.objects->is_broken());
}

}  // namespace
}  // namespace pipeyard::memory
