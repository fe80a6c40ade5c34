#include "core/attention/top_rows.h"

#include <algorithm>
#include <utility>

namespace softlookup {

void TopRows::Add(absl::Span<const CountedRow> rows) {
  absl::MutexLock lock(&mutex_);
  if (capacity_ == kUnlimited) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    return;
  }
  const auto size_max = static_cast<std::size_t>(SizeMax(capacity_));
  for (const CountedRow& row : rows) {
    if (!Wants(row)) continue;  // The rows added before it can have raised the threshold.
    if (rows_.size() == size_max) Prune();
    if (rows_.size() == rows_.capacity()) {
      rows_.reserve(std::min(std::max<std::size_t>(16, 2 * rows_.size()), size_max));
    }
    rows_.push_back(row);
  }
}

void TopRows::Prune() {
  if (static_cast<std::int64_t>(rows_.size()) <= capacity_) return;
  std::nth_element(rows_.begin(), rows_.begin() + (capacity_ - 1), rows_.end(),
                   [this](const CountedRow& a, const CountedRow& b) {
                     return rank_by_ == RankBy::kLogit ? RanksBefore(a, b)
                                                       : a.position < b.position;
                   });
  threshold_.store(Rank(rows_[capacity_ - 1]), std::memory_order_relaxed);
  rows_.resize(capacity_);
}

std::vector<CountedRow> TopRows::Take() {
  absl::MutexLock lock(&mutex_);
  if (capacity_ != kUnlimited) Prune();
  std::vector<CountedRow> rows = std::move(rows_);
  rows_.clear();
  return rows;
}

}  // namespace softlookup
