#include "core/store/store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/check.h"

namespace softlookup {

class Store::Waiter {
 public:
  Waiter(std::uint64_t revision, absl::AnyInvocable<void(absl::Status)> callback)
      : revision_(revision), callback_(std::move(callback)) {}

  std::uint64_t revision() const { return revision_; }
  bool done() const { return done_.load(); }
  void Finish(const absl::Status& status) {
    if (done_.exchange(true)) return;
    std::exchange(callback_, nullptr)(status);
  }

 private:
  const std::uint64_t revision_;
  std::atomic<bool> done_{false};
  absl::AnyInvocable<void(absl::Status)> callback_;  // Only the thread that sets done_ uses it.
};

Store::Store(std::uint64_t number, std::unique_ptr<StoreEditor> editor, absl::Time create_time,
             Executor executor)
    : number_(number),
      create_time_(create_time),
      editor_(std::move(editor)),
      executor_(std::move(executor)) {
  absl::MutexLock lock(&mutex_);
  snapshot_ = editor_->newest();
}

std::shared_ptr<const Snapshot> Store::snapshot() const {
  absl::MutexLock lock(&mutex_);
  return snapshot_;
}

StoreInfo Store::InfoOf(const Snapshot& snapshot) const {
  return {.config = snapshot.config(),
          .revision = snapshot.revision(),
          .row_count = snapshot.row_count(),
          .live_row_count = snapshot.live_row_count(),
          .byte_size = snapshot.byte_size(),
          .create_time = create_time_};
}

void Store::Publish(std::shared_ptr<const Snapshot> snapshot) {
  editor_->Commit();
  Waiters reached;
  {
    absl::MutexLock lock(&mutex_);
    SOFTLOOKUP_CHECK(snapshot->revision() >= snapshot_->revision())
        << "revision " << snapshot->revision() << " after " << snapshot_->revision();
    SOFTLOOKUP_CHECK(snapshot->row_count() >= snapshot_->row_count())
        << snapshot->row_count() << " rows after " << snapshot_->row_count();
    const auto waits = std::partition(waiters_.begin(), waiters_.end(), [&](const auto& waiter) {
      return waiter->revision() > snapshot->revision();
    });
    reached.assign(waits, waiters_.end());
    waiters_.erase(waits, waiters_.end());
    snapshot_ = std::move(snapshot);
  }
  FinishLater(std::move(reached), absl::OkStatus());
}

void Store::FinishLater(Waiters waiters, absl::Status status) {
  if (waiters.empty()) return;
  executor_([waiters = std::move(waiters), status = std::move(status)] {
    for (const auto& waiter : waiters) waiter->Finish(status);
  });
}

void Store::WhenRevision(std::uint64_t revision, const std::shared_ptr<CancelToken>& cancel,
                         absl::AnyInvocable<void(absl::Status)> callback) {
  const auto waiter = std::make_shared<Waiter>(revision, std::move(callback));
  absl::Status status;
  bool waits = false;
  {
    absl::MutexLock lock(&mutex_);
    status = closed_;
    waits = status.ok() && snapshot_->revision() < revision;
    if (waits) {
      // Removes waiters that were cancelled, each time the list has doubled since the last removal.
      if (waiters_.size() >= waiters_before_sweep_) {
        waiters_.erase(std::remove_if(waiters_.begin(), waiters_.end(),
                                      [](const auto& other) { return other->done(); }),
                       waiters_.end());
        waiters_before_sweep_ = 2 * waiters_.size() + 16;
      }
      waiters_.push_back(waiter);
    }
  }
  if (!waits) return waiter->Finish(status);
  cancel->OnWaitEnd([waiter](const absl::Status& end) { waiter->Finish(end); });
}

void Store::Close(absl::Status status) {
  Waiters waiters;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = status;
    waiters.swap(waiters_);
  }
  FinishLater(std::move(waiters), std::move(status));
}

}  // namespace softlookup
