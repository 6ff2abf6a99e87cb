// SteppedWord: as std::atomic<uint32_t> to its users; each access is a step of the exhaustive
// scheduler. Orders are taken for sequentially consistent.
//
// Thread safety: for threads of the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "workloads/memory/model/scheduler.h"

namespace pipeyard::memory::model {

class SteppedWord {
 public:
  uint32_t load(std::memory_order = std::memory_order_seq_cst) const {
    BeforeStep("load", this);
    Observe(value_);
    return value_;
  }
  void store(uint32_t value, std::memory_order = std::memory_order_seq_cst) {
    BeforeStep("store", this);
    value_ = value;
  }
  uint32_t exchange(uint32_t value, std::memory_order = std::memory_order_seq_cst) {
    BeforeStep("exchange", this);
    Observe(value_);
    return std::exchange(value_, value);
  }
  bool compare_exchange_strong(uint32_t& expected, uint32_t desired,
                               std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
    BeforeStep("compare_exchange", this);
    Observe(value_);
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(uint32_t& expected, uint32_t desired,
                             std::memory_order success = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired, success, failure);
  }
  // Without a step, for checks after a run.
  uint32_t Peek() const { return value_; }

 private:
  uint32_t value_;
};

}  // namespace pipeyard::memory::model
