// MemoryController: what one attempt may use, as the kernel's memory controller accounts it.
//
//   worker's stock ──empty: 64 pages' worth──► charged ≤ limit ──over──► caller reclaims, asks
//                                                                       again, then ENOMEM
//                  ◄── more than 64 pages' worth: all of it goes back
//
// Charges are bytes, so that pages and slab objects share one stock. A charge that a stock serves
// is no atomic read-modify-write. `charged` counts what the stocks hold, too; near the limit
// charges are exact and stocks are emptied by their owners' next free, so that at most what idle
// workers hold (below 1/16 of the limit, all together) is out of reach.
//
// It reclaims nothing: who charges does, and that does not lower `charged`, since what reclaim
// gives back (listed pages, empty slabs) is not charged. Source: kernel-mechanisms.md B3; batch of
// 64 pages: MEMCG_CHARGE_BATCH. Thread safety: Charge and Uncharge by the owner of the stock,
// everything else at any time. Ownership: state lives in the region; the handle, made before any
// fork, is valid in every process.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "workloads/memory/shared.h"

namespace pipeyard::memory {

inline constexpr uint64_t kNoMemoryLimit = std::numeric_limits<int64_t>::max();

// SHARED. Charged bytes that one worker does not use yet.
struct alignas(kCacheLine) ChargeStock {
  std::atomic<int64_t> bytes;  // written by its owner alone
  std::atomic<int64_t> high;   // more than this goes back; 0 near the limit

  // False where it holds less than that.
  bool TryTake(int64_t wanted) {
    const int64_t left = bytes.load(std::memory_order_relaxed) - wanted;
    if (left < 0) return false;
    bytes.store(left, std::memory_order_relaxed);
    return true;
  }
  // False where it would hold more than it may.
  bool TryGive(int64_t given) {
    const int64_t total = bytes.load(std::memory_order_relaxed) + given;
    if (total > high.load(std::memory_order_relaxed)) return false;
    bytes.store(total, std::memory_order_relaxed);
    return true;
  }
};
PIPEYARD_CHECK_SHARED(ChargeStock);

// SHARED
struct alignas(kCacheLine) MemoryControllerState {
  std::atomic<int64_t> charged;  // bytes, the stocks' included
  std::atomic<int64_t> peak;
  std::atomic<uint32_t> is_tight;  // near the limit: stocks are not filled
};
PIPEYARD_CHECK_SHARED(MemoryControllerState);

struct MemoryControllerOptions {
  bool is_on = true;                      // `accounting`
  uint64_t limit_bytes = kNoMemoryLimit;  // `memory_limit`
};

class MemoryController {
 public:
  MemoryController() = default;
  // `stocks`: one per worker, zeroed, as is `state`.
  void Init(MemoryControllerState* state, ChargeStock* stocks, int num_workers,
            const MemoryControllerOptions& options, uint64_t page_bytes);

  // False: over the limit; nothing was charged.
  bool Charge(ChargeStock& stock, int64_t bytes) {
    return stock.TryTake(bytes) || ChargeSlowly(stock, bytes);
  }
  void Uncharge(ChargeStock& stock, int64_t bytes) {
    if (!stock.TryGive(bytes)) [[unlikely]]
      UnchargeSlowly(stock, bytes);
  }
  bool ChargeSlowly(ChargeStock& stock, int64_t bytes);
  void UnchargeSlowly(ChargeStock& stock, int64_t bytes);
  // Gives back what the stock holds.
  void EmptyStock(ChargeStock& stock) { UnchargeSlowly(stock, 0); }

  bool is_on() const { return is_on_; }
  uint64_t limit_bytes() const { return limit_; }
  // What the stocks hold included. 0 where accounting is off.
  uint64_t charged_bytes() const;
  uint64_t peak_bytes() const;
  // Charged and in use; exact while no worker is inside.
  uint64_t used_bytes() const;

 private:
  // True where the bytes were added, the sum being at most `ceiling`.
  bool TryAdd(int64_t bytes, int64_t ceiling);
  void SetTight(bool is_tight);

  // Constant after Init().
  MemoryControllerState* state_ = nullptr;
  ChargeStock* stocks_ = nullptr;
  int num_workers_ = 0;
  bool is_on_ = false;
  int64_t limit_ = 0;
  int64_t batch_ = 0;    // bytes
  int64_t reserve_ = 0;  // below the limit: what all stocks together hold at most
};

}  // namespace pipeyard::memory
