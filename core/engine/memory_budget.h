#ifndef SOFTLOOKUP_CORE_ENGINE_MEMORY_BUDGET_H_
#define SOFTLOOKUP_CORE_ENGINE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/check.h"

namespace softlookup {

// What all stores take, and what waits to become part of one, against Limits::memory_bytes_max.
//
// The one thread that writes asks Check() before it makes a store grow, and tells Add() how it
// went. What waits is added up by any thread, and any thread may read the sums.
class MemoryBudget {
 public:
  // 0: no limit.
  explicit MemoryBudget(std::int64_t limit) : limit_(limit) {}

  // Bytes that count for as long as this lives, which must be shorter than the budget. Thread-safe.
  class Waiting {
   public:
    Waiting(MemoryBudget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) {
      budget_->waiting_bytes_ += bytes_;
    }
    Waiting(Waiting&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) {
      other.bytes_ = 0;
    }
    Waiting& operator=(Waiting&&) = delete;
    ~Waiting() {
      const std::int64_t before = budget_->waiting_bytes_.fetch_sub(bytes_);
      SOFTLOOKUP_DCHECK(before >= bytes_) << bytes_ << " of " << before << " bytes given back";
    }

   private:
    MemoryBudget* budget_;
    std::int64_t bytes_;
  };

  bool has_limit() const { return limit_ > 0; }

  // MEMORY_LIMIT if the stores may not take `growth` bytes more. `own_waiting_bytes` are those of
  // what waits for that; if there would be room but for all the others that wait, the error says
  // when to come back.
  absl::Status Check(std::int64_t growth, std::int64_t own_waiting_bytes) const;

  // The stores take `growth` more bytes, or less if it is negative. Does not check the limit: a
  // caller that must not exceed it calls Check() first. Stores that are loaded may exceed it.
  void Add(std::int64_t growth) {
    const std::int64_t before = store_bytes_.fetch_add(growth);
    SOFTLOOKUP_DCHECK(before + growth >= 0) << growth << " bytes more than " << before;
  }

  std::int64_t store_bytes() const { return store_bytes_; }
  std::int64_t used_bytes() const { return store_bytes_ + waiting_bytes_; }

 private:
  const std::int64_t limit_;
  std::atomic<std::int64_t> store_bytes_{0};
  std::atomic<std::int64_t> waiting_bytes_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_MEMORY_BUDGET_H_
