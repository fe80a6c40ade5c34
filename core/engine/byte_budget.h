#ifndef SOFTLOOKUP_CORE_ENGINE_BYTE_BUDGET_H_
#define SOFTLOOKUP_CORE_ENGINE_BYTE_BUDGET_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/check.h"

namespace softlookup {

// Counts bytes against Limits::ram_bytes_max: the bytes of all stores, and reserved bytes. Appends
// reserve bytes until they are answered. Lookups and Attends in progress reserve bytes for the best
// rows that they keep (RankingBudget). Older snapshots reserve what they alone hold while they are
// kept (KeptSnapshots).
//
// A write calls Check() for the growth of its store, then Add(). Only one write at a time may call
// these two, because another Check() in between would not see the growth. Bytes that are reserved
// first may be checked by any thread, with a growth of 0. Otherwise thread-safe.
class ByteBudget {
 public:
  // `limit` is in bytes. 0: no limit.
  explicit ByteBudget(std::int64_t limit) : limit_(limit) {}

  // Counts `bytes` as reserved until this object is destroyed. The budget must outlive it.
  class Reserved {
   public:
    Reserved(ByteBudget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) {
      budget_->reserved_bytes_ += bytes_;
    }
    Reserved(Reserved&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) {
      other.bytes_ = 0;
    }
    Reserved& operator=(Reserved&&) = delete;
    ~Reserved() {
      const std::int64_t before = budget_->reserved_bytes_.fetch_sub(bytes_);
      SOFTLOOKUP_DCHECK(before >= bytes_) << bytes_ << " of " << before << " bytes given back";
    }

   private:
    ByteBudget* budget_;
    std::int64_t bytes_;
  };

  bool has_limit() const { return limit_ > 0; }

  // Returns MEMORY_LIMIT if all counted bytes and `growth` more would exceed the limit.
  // `own_reserved_bytes` is the size of the caller's own Reserved, 0 if it has none. The error has
  // a retry delay if there would be room once all other reserved bytes are given back.
  absl::Status Check(std::int64_t growth, std::int64_t own_reserved_bytes) const;

  // Counts `growth` more bytes of stores, or fewer if `growth` is negative. Does not check the
  // limit: a caller that must not exceed the limit calls Check() first. Stores that are loaded from
  // the log may exceed the limit.
  void Add(std::int64_t growth) {
    const std::int64_t before = store_bytes_.fetch_add(growth);
    SOFTLOOKUP_DCHECK(before + growth >= 0) << growth << " bytes more than " << before;
  }

  std::int64_t store_bytes() const { return store_bytes_; }
  std::int64_t used_bytes() const { return store_bytes_ + reserved_bytes_; }

 private:
  const std::int64_t limit_;
  std::atomic<std::int64_t> store_bytes_{0};
  std::atomic<std::int64_t> reserved_bytes_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_BYTE_BUDGET_H_
