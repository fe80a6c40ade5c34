#ifndef SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
#define SOFTLOOKUP_CORE_BASE_CANCELLATION_H_

#include <atomic>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup {

// Tells work in progress that nobody waits for it any more. Thread-safe.
//
// A running scan polls it, and also watches `deadline` itself. Work that is asleep cannot poll: it
// registers a callback, and whoever owns the call must Cancel() at the deadline (gRPC does). What
// ends such a sleep need not end work that runs.
class CancelToken {
 public:
  explicit CancelToken(absl::Time deadline = absl::InfiniteFuture()) : deadline_(deadline) {}
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Marks the work as unwanted, because of the deadline if that has passed, and ends its sleep.
  // Later calls do nothing.
  void Cancel();

  // OK, or CANCELLED / DEADLINE_EXCEEDED. Cheap enough to ask every 50 microseconds.
  absl::Status Check() const;

  // Ends the work with `status`, which is an error, if it is asleep or when it is about to fall
  // asleep: runs the registered callback. Work that runs goes on.
  void EndSleep(absl::Status status);

  // Has Cancel() or EndSleep() run `callback` with the status that ends the sleep, at once if one
  // already came. It may come after the sleep has ended by itself. One callback at a time: a second
  // call replaces the first's.
  void OnSleepEnd(absl::AnyInvocable<void(absl::Status)> callback);

 private:
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  absl::Mutex mutex_;
  absl::Status sleep_end_ ABSL_GUARDED_BY(mutex_);  // OK: none came yet.
  absl::AnyInvocable<void(absl::Status)> callback_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
