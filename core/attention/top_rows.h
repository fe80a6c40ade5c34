#ifndef SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_
#define SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace softlookup {

struct CountedRow {
  std::uint64_t position = 0;
  double logit = 0;
  double score = 0;
};

// What rows are ranked by. Both are total orders, so what is kept does not depend on the order in
// which rows arrive.
enum class RankBy {
  kLogit,     // Larger logit first, then lower position.
  kPosition,  // Lower position first.
};

// Keeps the `capacity` first rows of all that are added. Thread-safe.
class TopRows {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  TopRows(std::int64_t capacity, RankBy rank_by) : capacity_(capacity), rank_by_(rank_by) {}

  // The most bytes that one of `capacity` rows takes.
  static constexpr std::int64_t BytesMax(std::int64_t capacity) {
    return SizeMax(capacity) * static_cast<std::int64_t>(sizeof(CountedRow));
  }

  // Rows that cannot be among the first need not be added. What is wanted only ever shrinks.
  bool Wants(const CountedRow& row) const {
    return Rank(row) >= threshold_.load(std::memory_order_relaxed);
  }

  void Add(absl::Span<const CountedRow> rows);

  // The rows kept, in no order. The object is empty afterwards.
  std::vector<CountedRow> Take();

 private:
  // Larger ranks come first.
  double Rank(const CountedRow& row) const {
    return rank_by_ == RankBy::kLogit ? row.logit : -static_cast<double>(row.position);
  }
  bool ComesBefore(const CountedRow& a, const CountedRow& b) const {
    return Rank(a) != Rank(b) ? Rank(a) > Rank(b) : a.position < b.position;
  }
  // A quarter more than are wanted, and some, keeps the cost of a row constant and the memory
  // bounded.
  static constexpr std::int64_t SizeMax(std::int64_t capacity) {
    return capacity + capacity / 4 + 64;
  }
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t capacity_;
  const RankBy rank_by_;
  std::atomic<double> threshold_{-std::numeric_limits<double>::infinity()};
  absl::Mutex mutex_;
  std::vector<CountedRow> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_
