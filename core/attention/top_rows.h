#ifndef SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_
#define SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// The order in which TopRows ranks rows. No two rows tie in any of these orders. So the rows kept
// do not depend on the order in which rows are added.
enum class RankBy {
  kLogit,     // As RanksBefore: larger logit first, then lower position.
  kWeight,    // As SOFT weights are listed: larger RoundedLogit first, then lower position.
  kPosition,  // Lower position first.
};

// Returns whether `a` comes before `b` in the order `rank_by`.
bool ComesBefore(RankBy rank_by, const CountedRow& a, const CountedRow& b);

// Returns the order of RankedRows::best in a partial answer.
RankBy OrderOfBestRows(const AnswerShape& shape);

// Keeps the `capacity` rows that rank first among all that are added. Thread-safe.
class TopRows {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  TopRows(std::int64_t capacity, RankBy rank_by) : capacity_(capacity), rank_by_(rank_by) {}

  // Returns an upper bound on the bytes of a collector of `capacity` rows.
  static constexpr std::int64_t BytesMax(std::int64_t capacity) {
    return SizeMax(capacity) * static_cast<std::int64_t>(sizeof(CountedRow));
  }

  // Returns false only if `row` cannot rank among the first `capacity` rows, so that Add() would
  // leave it out. Once this has returned false for a row, it always does.
  bool Wants(const CountedRow& row) const {
    return Rank(row) >= threshold_.load(std::memory_order_relaxed);
  }

  void Add(absl::Span<const CountedRow> rows);

  // Returns the rows kept, in no order, and leaves the collector empty.
  std::vector<CountedRow> Take();

 private:
  // Returns the number of `row` that is compared with threshold_. For kWeight, threshold_ is a
  // rounded logit, but this number is the logit as it is. Rounding it down, too, would change no
  // comparison, because threshold_ is a multiple of the step that logits are rounded to.
  double Rank(const CountedRow& row) const {
    return rank_by_ == RankBy::kPosition ? -static_cast<double>(row.position) : row.logit;
  }
  // Returns the most rows that the collector holds before it prunes itself to `capacity`. Room for
  // a quarter more than `capacity` keeps the average cost of an added row constant.
  static constexpr std::int64_t SizeMax(std::int64_t capacity) {
    return capacity + capacity / 4 + 64;
  }
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t capacity_;
  const RankBy rank_by_;
  // A row with a smaller Rank() cannot be among the first capacity_ rows.
  std::atomic<double> threshold_{-std::numeric_limits<double>::infinity()};
  absl::Mutex mutex_;
  std::vector<CountedRow> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TOP_ROWS_H_
