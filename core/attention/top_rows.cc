#include "core/attention/top_rows.h"

#include <algorithm>
#include <utility>

#include "core/attention/listed_weight.h"

namespace softlookup {

bool ComesBefore(RankBy rank_by, const CountedRow& a, const CountedRow& b) {
  if (rank_by == RankBy::kLogit) return RanksBefore(a, b);
  if (rank_by == RankBy::kWeight) {
    const double logit_a = RoundedLogit(a.logit), logit_b = RoundedLogit(b.logit);
    if (logit_a != logit_b) return logit_a > logit_b;
  }
  return a.position < b.position;
}

RankBy OrderOfBestRows(const AnswerShape& shape) {
  if (shape.selects_rows()) return RankBy::kLogit;
  if (shape.weights == WeightsMode::kAll) return RankBy::kPosition;
  return shape.mode == Mode::kSoft ? RankBy::kWeight : RankBy::kLogit;
}

void TopRows::Add(absl::Span<const CountedRow> rows) {
  absl::MutexLock lock(&mutex_);
  if (capacity_ == kUnlimited) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    return;
  }
  const auto size_max = static_cast<std::size_t>(SizeMax(capacity_));
  for (const CountedRow& row : rows) {
    if (!Wants(row)) continue;  // Rows added earlier in this loop can have raised the threshold.
    if (rows_.size() == size_max) Prune();
    if (rows_.size() == rows_.capacity()) {
      rows_.reserve(std::min(std::max<std::size_t>(16, 2 * rows_.size()), size_max));
    }
    rows_.push_back(row);
  }
}

void TopRows::Prune() {
  if (static_cast<std::int64_t>(rows_.size()) <= capacity_) return;
  std::nth_element(
      rows_.begin(), rows_.begin() + (capacity_ - 1), rows_.end(),
      [this](const CountedRow& a, const CountedRow& b) { return ComesBefore(rank_by_, a, b); });
  const double rank = Rank(rows_[capacity_ - 1]);
  threshold_.store(rank_by_ == RankBy::kWeight ? RoundedLogit(rank) : rank,
                   std::memory_order_relaxed);
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
