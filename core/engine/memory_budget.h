#ifndef SOFTLOOKUP_CORE_ENGINE_MEMORY_BUDGET_H_
#define SOFTLOOKUP_CORE_ENGINE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/check.h"

namespace softlookup {

// Counts the bytes of all stores and of work that waits, against Limits::memory_bytes_max.
//
// The thread that writes calls Check() before it lets a store grow, and Add() for the change. Only
// one thread at a time writes. Any thread may make a Waiting or read the sums.
class MemoryBudget {
 public:
  // 0: no limit.
  explicit MemoryBudget(std::int64_t limit) : limit_(limit) {}

  // Counts `bytes` as waiting until it is destroyed. The budget must outlive it. Thread-safe.
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

  // MEMORY_LIMIT if the stores may not take `growth` bytes more. `own_waiting_bytes` is what the
  // caller's own Waiting counts. If there were room without all other waiting bytes, the error says
  // when to try again.
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
