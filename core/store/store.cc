#include "core/store/store.h"

#include <utility>

#include "core/base/check.h"

namespace softlookup {

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
  editor().Commit();
  RevisionWaiters::List reached;
  {
    absl::MutexLock lock(&mutex_);
    SOFTLOOKUP_CHECK(snapshot->revision() >= snapshot_->revision())
        << "revision " << snapshot->revision() << " after " << snapshot_->revision();
    SOFTLOOKUP_CHECK(snapshot->row_count() >= snapshot_->row_count())
        << snapshot->row_count() << " rows after " << snapshot_->row_count();
    reached = waiters_.TakeReached(snapshot->revision());
    snapshot_ = std::move(snapshot);
  }
  FinishLater(std::move(reached), absl::OkStatus());
}

std::shared_ptr<Store> Store::HandOver() {
  editor().Commit();
  SOFTLOOKUP_CHECK(editor().newest()->config().name != snapshot()->config().name)
      << "the name is still " << snapshot()->config().name;
  return std::make_shared<Store>(number_, std::move(editor_), create_time_, executor_);
}

void Store::FinishLater(RevisionWaiters::List waiters, absl::Status status) {
  if (waiters.empty()) return;
  executor_([waiters = std::move(waiters), status = std::move(status)] {
    for (const auto& waiter : waiters) waiter->Finish(status);
  });
}

void Store::WhenRevision(std::uint64_t revision, const std::shared_ptr<CancelToken>& cancel,
                         absl::AnyInvocable<void(absl::Status)> callback) {
  const auto waiter = std::make_shared<RevisionWaiter>(revision, std::move(callback));
  absl::Status status;
  bool waits = false;
  {
    absl::MutexLock lock(&mutex_);
    status = closed_;
    waits = status.ok() && snapshot_->revision() < revision;
    if (waits) waiters_.Add(waiter);
  }
  if (!waits) return waiter->Finish(status);
  cancel->wait().OnEnd([waiter](const absl::Status& end) { waiter->Finish(end); });
}

void Store::Close(absl::Status status) {
  RevisionWaiters::List waiters;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = status;
    waiters = waiters_.TakeAll();
  }
  FinishLater(std::move(waiters), std::move(status));
}

}  // namespace softlookup
