#include "workloads/memory/object_allocator.h"

#include <bit>
#include <string>

namespace pipeyard::memory {

// Gives back what nobody uses: the barns' sheaves, then every empty slab. Sheaves of workers are
// theirs alone.
class ObjectAllocator::EmptySlabs final : public Shrinker {
 public:
  explicit EmptySlabs(ObjectAllocator& allocator) : allocator_(allocator) {}
  uint64_t Shrink(PageWorker& worker, uint64_t wanted) override {
    return allocator_.Shrink(worker, wanted);
  }

 private:
  ObjectAllocator& allocator_;
};

Result<SlabForm> ParseSlabForm(std::string_view text) {
  if (text == "sheaves") return SlabForm::kSheaves;
  if (text == "cpu-slab") return SlabForm::kCpuSlab;
  return InvalidArgument("slab \"" + std::string(text) + "\": must be sheaves or cpu-slab");
}

std::string_view SlabFormName(SlabForm form) {
  return form == SlabForm::kSheaves ? "sheaves" : "cpu-slab";
}

Result<ObjectAllocator::Plan> ObjectAllocator::AddTo(RegionLayout& layout,
                                                     const ObjectAllocatorOptions& options,
                                                     const PageAllocator::Plan& pages_plan,
                                                     const PageAllocatorOptions& pages_options) {
  if (options.defrag_ratio < 0 || options.defrag_ratio > 100) {
    return InvalidArgument("defrag_ratio " + std::to_string(options.defrag_ratio) +
                           ": must be from 0 to 100");
  }
  const uint64_t page_bytes = pages_options.page_bytes;
  if (page_bytes > kMaxSlabPageBytes) {
    return InvalidArgument("pages of " + std::to_string(page_bytes) +
                           " bytes: slabs are made of pages of at most " +
                           std::to_string(kMaxSlabPageBytes));
  }
  const uint64_t num_workers = pages_options.worker_cpus.size();
  const uint64_t num_nodes = pages_plan.node_ids.size();
  const uint32_t num_classes = NumSlabClasses(page_bytes);
  Plan plan;
  plan.lists = SlabLists::AddTo(layout, pages_plan, page_bytes);
  plan.workers_offset = layout.Add(sizeof(ObjectWorkerState) * num_workers, kCacheLine);
  plan.counters_offset = layout.Add(sizeof(CounterBlock<ObjectCounter>) * num_workers, kCacheLine);
  plan.barns_offset = layout.Add(sizeof(Barn) * num_classes * num_nodes, kCacheLine);
  plan.reclaim_offset = layout.Add(sizeof(ObjectReclaim), kCacheLine);
  for (uint32_t i = 0; i < num_classes; ++i) {
    const uint32_t capacity = SheafCapacity(SlabClassBytes(i), page_bytes);
    plan.sheaf_offsets.push_back(layout.Add(
        Sheaf::Bytes(capacity) * (2 * num_workers + kBarnSheaves * num_nodes), kCacheLine));
  }
  return plan;
}

Result<std::unique_ptr<ObjectAllocator>> ObjectAllocator::Create(
    Region& region, const Plan& plan, const ObjectAllocatorOptions& options, PageAllocator& pages,
    const numa::Topology& topology) {
  std::unique_ptr<ObjectAllocator> allocator(
      new ObjectAllocator(region, plan, options, pages, topology));
  pages.RegisterShrinker(allocator->shrinker_.get());
  return allocator;
}

ObjectAllocator::ObjectAllocator(Region& region, const Plan& plan,
                                 const ObjectAllocatorOptions& options, PageAllocator& pages,
                                 const numa::Topology& topology)
    : base_(region.base()),
      pages_(&pages),
      lists_(region, plan.lists, pages, static_cast<int>(topology.cpus().size())),
      max_slab_bytes_(MaxSlabBytes(pages.page_bytes())),
      uses_sheaves_(options.form == SlabForm::kSheaves),
      is_strict_(options.is_strict_policy),
      // As the kernel keeps what sysfs shows as 0..100.
      gate_ratio_(static_cast<uint32_t>(options.defrag_ratio) * 10),
      num_workers_(pages.num_workers()),
      workers_(region.At<ObjectWorkerState>(plan.workers_offset)),
      counters_(region.At<CounterBlock<ObjectCounter>>(plan.counters_offset)),
      barns_(region.At<Barn>(plan.barns_offset)),
      reclaim_(region.At<ObjectReclaim>(plan.reclaim_offset)),
      shrinker_(std::make_unique<EmptySlabs>(*this)) {
  const size_t num_nodes = lists_.nodes().size();
  for (uint32_t i = 0; i < lists_.num_classes(); ++i) {
    const SlabClass& slab_class = lists_.slab_class(i);
    uint64_t next_sheaf = plan.sheaf_offsets[i];
    auto make_sheaf = [&] {
      const uint64_t offset = next_sheaf;
      next_sheaf += Sheaf::Bytes(slab_class.sheaf_capacity);
      SheafAt(offset).size = 0;
      SheafAt(offset).capacity = uses_sheaves_ ? slab_class.sheaf_capacity : 0;
      return offset;
    };
    for (int worker = 0; worker < num_workers_; ++worker) {
      WorkerClass& mine = workers_[worker].classes[i];
      mine.main = make_sheaf();
      mine.spare = make_sheaf();
      // The kernel charges what an object needs to remember its controller: one pointer.
      mine.charge_bytes = slab_class.bytes + 8;
      mine.active = kNoPage;
      mine.free = kNoFreeObjects;
    }
    for (size_t node = 0; node < num_nodes; ++node) {
      Barn& barn = barns_[i * num_nodes + node];
      static_cast<void>(barn.mutex.Lock());
      barn.num_full = 0;
      for (uint64_t& sheaf : barn.sheaves) sheaf = make_sheaf();
      barn.mutex.Unlock();
    }
  }
  for (int worker = 0; worker < num_workers_; ++worker) {
    // SplitMix64's step keeps neighbouring seeds apart; the dice must not start at 0.
    uint64_t seed = options.seed + static_cast<uint64_t>(worker + 1) * 0x9e37'79b9'7f4a'7c15ULL;
    seed = (seed ^ seed >> 30) * 0xbf58'476d'1ce4'e5b9ULL;
    seed = (seed ^ seed >> 27) * 0x94d0'49bb'1331'11ebULL;
    workers_[worker].random = (seed ^ seed >> 31) | 1;
  }
}

ObjectAllocator::~ObjectAllocator() = default;

ObjectWorker ObjectAllocator::MakeWorker(int index, PageWorker& pages) const {
  const numa::NodeId local = pages.local.preferred;
  return ObjectWorker{workers_ + index,       counters_ + index, pages.stock, &pages, local,
                      lists_.NodeIndex(local)};
}

Barn& ObjectAllocator::BarnOf(uint32_t class_index, numa::NodeId node) const {
  return barns_[class_index * lists_.nodes().size() + lists_.NodeIndex(node)];
}

uint64_t ObjectAllocator::ClassBytes(uint32_t size_bytes, uint64_t page_bytes) {
  if (size_bytes <= MaxSlabBytes(page_bytes)) return SlabClassBytes(SlabClassIndex(size_bytes));
  return page_bytes << OrderOf(size_bytes, page_bytes);
}

uint32_t ObjectAllocator::NumPartialSlabs(uint32_t size_bytes, numa::NodeId node) const {
  return lists_.HasMemory(node) ? lists_.NumPartial(SlabClassIndex(size_bytes), node) : 0;
}

numa::NodeId ObjectAllocator::AskStrictPolicy(ObjectWorker& worker) {
  const numa::NodeMask online =
      numa::NodeMask::FromBits(pages_->gates().memory_nodes.load(std::memory_order_relaxed));
  const numa::NodeId node =
      StrictSlabNode(worker.pages->policy, pages_->ContextOf(*worker.pages), online);
  if (node != numa::kNoNode) worker.counters->Add(ObjectCounter::kStrictQueries);
  return node;
}

ObjectRef ObjectAllocator::AllocateSlowly(ObjectWorker& worker, uint32_t size_bytes,
                                          numa::NodeId node) {
  if (!IsSlabSize(size_bytes)) return AllocateLarge(worker, size_bytes, node);
  const uint32_t class_index = SlabClassIndex(size_bytes);
  WorkerClass& mine = worker.state->classes[class_index];
  // The cpu-slab form's fast path. It is not inline: that costs the other form's a fifth.
  if (mine.free.count != 0 && node == numa::kNoNode && !is_strict_ &&
      worker.stock->TryTake(mine.charge_bytes)) {
    worker.counters->Add(ObjectCounter::kFastAllocations);
    return PopActive(mine);
  }
  if (lists_.is_broken()) [[unlikely]] {
    worker.counters->Add(ObjectCounter::kFailures);
    return kNoObject;
  }
  if (is_strict_ && node == numa::kNoNode) node = AskStrictPolicy(worker);
  // A node that has no memory is nobody's wish; the kernel drops it, too.
  if (node != numa::kNoNode && !lists_.HasMemory(node)) node = numa::kNoNode;
  if (node != numa::kNoNode) worker.counters->Add(ObjectCounter::kExplicitNode);

  const uint32_t charge_bytes = mine.charge_bytes;
  if (!pages_->Charge(*worker.pages, charge_bytes)) {
    worker.counters->Add(ObjectCounter::kChargesRefused);
    worker.counters->Add(ObjectCounter::kFailures);
    return kNoObject;
  }
  ObjectRef object = kNoObject;
  if (uses_sheaves_) {
    object = AllocateFromSheaf(worker, class_index, node);
    if (object == kNoObject) {
      object = AllocateOne(worker, class_index, node);
      if (object != kNoObject) worker.counters->Add(ObjectCounter::kSlowAllocations);
    }
  } else {
    object = AllocateFromActive(worker, class_index, node);
  }
  if (object == kNoObject) {
    pages_->Uncharge(*worker.pages, charge_bytes);
    worker.counters->Add(ObjectCounter::kFailures);
  }
  return object;
}

void ObjectAllocator::FreeSlowly(ObjectWorker& worker, ObjectRef object, uint32_t size_bytes) {
  if (!IsSlabSize(size_bytes)) return FreeLarge(worker, object);
  const uint32_t class_index = SlabClassIndex(size_bytes);
  WorkerClass& mine = worker.state->classes[class_index];
  if (object - mine.active_begin < mine.active_bytes && worker.stock->TryGive(mine.charge_bytes))
    return PushActive(worker, mine, object);
  pages_->Uncharge(*worker.pages, mine.charge_bytes);
  const bool is_local = IsLocal(worker, object);
  if (!uses_sheaves_) {
    if (object - mine.active_begin < mine.active_bytes) return PushActive(worker, mine, object);
  } else if (is_local) {
    if (SheafAt(mine.main).size == SheafAt(mine.main).capacity)
      ReplaceFullMain(worker, class_index);
    Sheaf& sheaf = SheafAt(mine.main);
    sheaf.objects()[sheaf.size++] = object;
    worker.counters->Add(ObjectCounter::kFastFrees);
    return;
  }
  worker.counters->Add(is_local ? ObjectCounter::kSlowFrees : ObjectCounter::kRemoteFrees);
  GiveToSlabs(worker, class_index, std::span<const ObjectRef>(&object, 1));
}

ObjectRef ObjectAllocator::AllocateLarge(ObjectWorker& worker, uint32_t size_bytes,
                                         numa::NodeId node) {
  const uint32_t order = OrderOf(size_bytes, pages_->page_bytes());
  // Without a node the page allocator obeys the task's policy; a node is named without a mask, so
  // that a bound task may get pages outside of it.
  const PageId first = order <= kMaxOrder
                           ? pages_->AllocateBlock(*worker.pages, order, node, AllocationFlags{})
                           : kNoPage;
  if (first == kNoPage) {
    worker.counters->Add(ObjectCounter::kFailures);
    return kNoObject;
  }
  worker.counters->Add(ObjectCounter::kLargeAllocations);
  lists_.MarkBlock(first, order);
  return pages_->OffsetOf(first);
}

void ObjectAllocator::FreeLarge(ObjectWorker& worker, ObjectRef object) {
  const PageId first = pages_->PageAt(object);
  const uint32_t order = lists_.page(first).order;
  lists_.UnmarkBlock(first);
  pages_->FreeBlock(*worker.pages, first, order);
  worker.counters->Add(ObjectCounter::kLargeFrees);
}

void ObjectAllocator::Flush(ObjectWorker& worker) {
  for (uint32_t i = 0; i < lists_.num_classes(); ++i) {
    WorkerClass& mine = worker.state->classes[i];
    if (uses_sheaves_) {
      FlushSheaf(worker, i, SheafAt(mine.main));
      FlushSheaf(worker, i, SheafAt(mine.spare));
    } else {
      DeactivateSlab(worker, i);
    }
  }
}

std::vector<CounterValue> ObjectAllocator::Counters() const {
  std::vector<CounterValue> values = ReduceCounters(kObjectCounters, counters_, num_workers_);
  values[static_cast<size_t>(ObjectCounter::kSlabsReclaimed)].value +=
      reclaim_->num_slabs.load(std::memory_order_relaxed);
  return values;
}

}  // namespace pipeyard::memory
