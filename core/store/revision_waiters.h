#ifndef SOFTLOOKUP_CORE_STORE_REVISION_WAITERS_H_
#define SOFTLOOKUP_CORE_STORE_REVISION_WAITERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace softlookup {

// A callback that waits for a revision of a store, and runs at most once. Thread-safe.
class RevisionWaiter {
 public:
  RevisionWaiter(std::uint64_t revision, absl::AnyInvocable<void(absl::Status)> callback);

  std::uint64_t revision() const { return revision_; }
  // Returns whether Finish() has been called.
  bool done() const { return done_.load(); }
  // Runs the callback with `status`. Does nothing after the first call.
  void Finish(const absl::Status& status);

 private:
  const std::uint64_t revision_;
  std::atomic<bool> done_{false};
  absl::AnyInvocable<void(absl::Status)> callback_;  // Only the thread that sets done_ uses it.
};

// The callbacks that wait for revisions which one store does not have yet. Not thread-safe.
class RevisionWaiters {
 public:
  using List = std::vector<std::shared_ptr<RevisionWaiter>>;

  // Adds `waiter`. Removes waiters that are done, each time the list has doubled since the last
  // removal.
  void Add(std::shared_ptr<RevisionWaiter> waiter);
  // Removes and returns the waiters for `revision` or an earlier one.
  List TakeReached(std::uint64_t revision);
  // Removes and returns all waiters.
  List TakeAll();

 private:
  List waiters_;
  // When waiters_ has this many elements, Add() removes the waiters that are done.
  std::size_t size_before_sweep_ = 16;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_REVISION_WAITERS_H_
