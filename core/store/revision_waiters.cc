#include "core/store/revision_waiters.h"

#include <algorithm>
#include <utility>

namespace softlookup {

RevisionWaiter::RevisionWaiter(std::uint64_t revision,
                               absl::AnyInvocable<void(absl::Status)> callback)
    : revision_(revision), callback_(std::move(callback)) {}

void RevisionWaiter::Finish(const absl::Status& status) {
  if (done_.exchange(true)) return;
  std::exchange(callback_, nullptr)(status);
}

void RevisionWaiters::Add(std::shared_ptr<RevisionWaiter> waiter) {
  if (waiters_.size() >= size_before_sweep_) {
    waiters_.erase(std::remove_if(waiters_.begin(), waiters_.end(),
                                  [](const auto& other) { return other->done(); }),
                   waiters_.end());
    size_before_sweep_ = 2 * waiters_.size() + 16;
  }
  waiters_.push_back(std::move(waiter));
}

RevisionWaiters::List RevisionWaiters::TakeReached(std::uint64_t revision) {
  const auto waits = std::partition(waiters_.begin(), waiters_.end(), [&](const auto& waiter) {
    return waiter->revision() > revision;
  });
  List reached(waits, waiters_.end());
  waiters_.erase(waits, waiters_.end());
  return reached;
}

RevisionWaiters::List RevisionWaiters::TakeAll() {
  List waiters;
  waiters.swap(waiters_);
  return waiters;
}

}  // namespace softlookup
