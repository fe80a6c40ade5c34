#ifndef SOFTLOOKUP_CORE_STORE_STORE_H_
#define SOFTLOOKUP_CORE_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/cancellation.h"
#include "core/store/snapshot.h"
#include "core/store/store_writer.h"

namespace softlookup {

// One store: what its readers see, and the writer of what they will see next. Thread-safe but for
// the writer, which belongs to the one thread that writes.
class Store {
 public:
  // Runs a task soon, on another thread.
  using Executor = std::function<void(absl::AnyInvocable<void()>)>;

  // `number` tells the store from all others that the engine has had, of the same name or not. A
  // write only hands those who waited for it to `executor`, so that it does not wait for them.
  Store(std::uint64_t number, std::unique_ptr<StoreWriter> writer, absl::Time create_time,
        Executor executor);

  std::shared_ptr<const Snapshot> snapshot() const;
  std::uint64_t number() const { return number_; }
  absl::Time create_time() const { return create_time_; }
  StoreInfo InfoOf(const Snapshot& snapshot) const;
  StoreInfo info() const { return InfoOf(*snapshot()); }

  StoreWriter& writer() { return *writer_; }
  // Lets readers see `snapshot`, one of the writer's, and keeps what it made so far.
  void Publish(std::shared_ptr<const Snapshot> snapshot);

  // Runs `callback` once: with OK when the store reaches `revision`, with the status of `cancel` if
  // that is cancelled before, with `status` if the store is closed before. Here if that is so now,
  // on the thread that cancels, or by the executor.
  void WhenRevision(std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                    absl::AnyInvocable<void(absl::Status)> callback);

  // The store is deleted: those who wait for a revision get `status`.
  void Close(absl::Status status);

 private:
  // Someone who waits for a revision; whoever takes the callback runs it.
  class Waiter;
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  // Ends their wait in one task.
  void FinishLater(Waiters waiters, absl::Status status);

  const std::uint64_t number_;
  const absl::Time create_time_;
  const std::unique_ptr<StoreWriter> writer_;
  const Executor executor_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  Waiters waiters_ ABSL_GUARDED_BY(mutex_);
  std::size_t waiters_before_sweep_ ABSL_GUARDED_BY(mutex_) = 16;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_H_
