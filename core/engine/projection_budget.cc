#include "core/engine/projection_budget.h"

namespace softlookup {

ProjectionBudget::~ProjectionBudget() {
  const auto none_is_counted = [this]()
                                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none_is_counted));
}

std::optional<ProjectionBudget::Taken> ProjectionBudget::Take(std::int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (count_ > 0 && bytes_ + bytes > limit_) return std::nullopt;
  ++count_;
  bytes_ += bytes;
  return Taken(*this, bytes);
}

void ProjectionBudget::GiveBack(std::int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  --count_;
  bytes_ -= bytes;
}

}  // namespace softlookup
