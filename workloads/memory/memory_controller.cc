#include "workloads/memory/memory_controller.h"

#include <algorithm>

namespace pipeyard::memory {
namespace {

constexpr int64_t kBatchPages = 64;
// Where accounting is off a stock that never runs out stands for "not counted": no branch tells the
// two apart.
constexpr int64_t kEndless = int64_t{1} << 62;

}  // namespace

void MemoryController::Init(MemoryControllerState* state, ChargeStock* stocks, int num_workers,
                            const MemoryControllerOptions& options, uint64_t page_bytes) {
  state_ = state;
  stocks_ = stocks;
  num_workers_ = num_workers;
  is_on_ = options.is_on;
  limit_ = static_cast<int64_t>(std::min(options.limit_bytes, kNoMemoryLimit));
  const int64_t workers = std::max(num_workers, 1);
  batch_ = kBatchPages * static_cast<int64_t>(page_bytes);
  if (options.limit_bytes < kNoMemoryLimit) {
    // 1/16 over all workers: see the head of the header.
    batch_ = std::min(batch_, limit_ / (16 * workers));
    reserve_ = batch_ * workers;
  }
  for (int i = 0; i < num_workers; ++i) {
    stocks[i].bytes.store(is_on_ ? 0 : kEndless, std::memory_order_relaxed);
    stocks[i].high.store(is_on_ ? batch_ : std::numeric_limits<int64_t>::max(),
                         std::memory_order_relaxed);
  }
}

bool MemoryController::TryAdd(int64_t bytes, int64_t ceiling) {
  int64_t charged = state_->charged.load(std::memory_order_relaxed);
  do {
    if (charged > ceiling - bytes) return false;
  } while (
      !state_->charged.compare_exchange_weak(charged, charged + bytes, std::memory_order_relaxed));
  charged += bytes;
  int64_t peak = state_->peak.load(std::memory_order_relaxed);
  while (charged > peak &&
         !state_->peak.compare_exchange_weak(peak, charged, std::memory_order_relaxed)) {
  }
  return true;
}

bool MemoryController::ChargeSlowly(ChargeStock& stock, int64_t bytes) {
  if (!is_on_) return true;
  const int64_t batch = std::max(batch_, bytes);
  if (TryAdd(batch, limit_ - reserve_)) {
    const int64_t held = stock.bytes.load(std::memory_order_relaxed);
    stock.bytes.store(held + batch - bytes, std::memory_order_relaxed);
    return true;
  }
  SetTight(true);
  // What the stock holds counts for this charge.
  const int64_t held = stock.bytes.load(std::memory_order_relaxed);
  stock.bytes.store(0, std::memory_order_relaxed);
  if (TryAdd(bytes - held, limit_)) return true;
  stock.bytes.store(held, std::memory_order_relaxed);
  return false;
}

void MemoryController::UnchargeSlowly(ChargeStock& stock, int64_t bytes) {
  if (!is_on_) return;
  const int64_t held = stock.bytes.load(std::memory_order_relaxed);
  stock.bytes.store(0, std::memory_order_relaxed);
  const int64_t charged =
      state_->charged.fetch_sub(held + bytes, std::memory_order_relaxed) - held - bytes;
  if (state_->is_tight.load(std::memory_order_relaxed) != 0 &&
      charged < limit_ - 2 * reserve_ - batch_) {
    SetTight(false);
  }
}

void MemoryController::SetTight(bool is_tight) {
  if ((state_->is_tight.exchange(is_tight ? 1 : 0, std::memory_order_seq_cst) != 0) == is_tight) {
    return;
  }
  // Again where another worker turned it meanwhile: else the last to write, not the last to turn,
  // would decide.
  for (bool wanted = is_tight;; wanted = !wanted) {
    for (int i = 0; i < num_workers_; ++i) {
      stocks_[i].high.store(wanted ? 0 : batch_, std::memory_order_seq_cst);
    }
    if ((state_->is_tight.load(std::memory_order_seq_cst) != 0) == wanted) return;
  }
}

uint64_t MemoryController::charged_bytes() const {
  return is_on_ ? static_cast<uint64_t>(state_->charged.load(std::memory_order_relaxed)) : 0;
}

uint64_t MemoryController::peak_bytes() const {
  return is_on_ ? static_cast<uint64_t>(state_->peak.load(std::memory_order_relaxed)) : 0;
}

uint64_t MemoryController::used_bytes() const {
  if (!is_on_) return 0;
  int64_t used = state_->charged.load(std::memory_order_relaxed);
  for (int i = 0; i < num_workers_; ++i) used -= stocks_[i].bytes.load(std::memory_order_relaxed);
  return static_cast<uint64_t>(used);
}

}  // namespace pipeyard::memory
