#ifndef SOFTLOOKUP_CORE_STORE_STORE_H_
#define SOFTLOOKUP_CORE_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/base/check.h"
#include "core/store/revision_waiters.h"
#include "core/store/snapshot.h"
#include "core/store/store_editor.h"

namespace softlookup {

// Publishes the revisions of one store under one name. Readers see the writes of the store's editor
// only once Publish() is called. Thread-safe, except that only one thread at a time may use the
// editor, or call Publish() or HandOver().
class Store {
 public:
  // Runs a task soon, on another thread.
  using Executor = std::function<void(absl::AnyInvocable<void()>)>;

  // `number` must be unique among all stores that the engine has ever had, including deleted stores
  // of the same name. Only a store that is renamed keeps its number. `executor` runs the callbacks
  // that waited for a revision, so that the write that makes the revision does not wait for them.
  Store(std::uint64_t number, std::unique_ptr<StoreEditor> editor, absl::Time create_time,
        Executor executor);

  std::shared_ptr<const Snapshot> snapshot() const;
  std::uint64_t number() const { return number_; }
  absl::Time create_time() const { return create_time_; }
  StoreInfo InfoOf(const Snapshot& snapshot) const;
  StoreInfo info() const { return InfoOf(*snapshot()); }

  // Must not be called after HandOver().
  StoreEditor& editor() {
    SOFTLOOKUP_CHECK(editor_ != nullptr) << "store " << number_ << " was handed over";
    return *editor_;
  }
  // Commits the editor's writes so far and lets readers see `snapshot`, which the editor made. The
  // executor then runs the callbacks that waited for a revision up to that of `snapshot`.
  void Publish(std::shared_ptr<const Snapshot> snapshot);

  // Commits the editor's writes so far. Of these, only the last may be not committed yet. It must
  // have changed the store's name. Returns a Store that has the editor from then on, and shows its
  // newest snapshot under the new name. This Store shows the snapshot that it showed before. Call
  // Close() on it next.
  std::shared_ptr<Store> HandOver();

  // Runs `callback` once, with OK when the store has `revision` or a later one. If `cancel` ends
  // the wait first, the status is that of `cancel`. If the store is closed first, the status is
  // that of Close(). If one of these three has happened already, `callback` runs before
  // WhenRevision() returns. Otherwise the executor runs `callback`, or the thread that ends the
  // wait by `cancel`.
  void WhenRevision(std::uint64_t revision, const std::shared_ptr<CancelToken>& cancel,
                    absl::AnyInvocable<void(absl::Status)> callback);

  // Call this when the store is deleted or renamed. Callbacks that wait for a revision get
  // `status`, which must be an error. So do the callbacks of later calls of WhenRevision().
  void Close(absl::Status status);

 private:
  // Hands the executor one task that runs the callbacks of all `waiters` with `status`.
  void FinishLater(RevisionWaiters::List waiters, absl::Status status);

  const std::uint64_t number_;
  const absl::Time create_time_;
  std::unique_ptr<StoreEditor> editor_;  // Null after HandOver().
  const Executor executor_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  RevisionWaiters waiters_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // OK until Close() is called.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_H_
