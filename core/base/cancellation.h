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

// Asks work to stop, when its caller cancels it or its deadline passes. Thread-safe.
//
// Running work polls Check(), which returns an error after Cancel() or the deadline. Work that
// waits for an event cannot poll, so it registers a callback with OnWaitEnd(). The token does not
// run the callback at the deadline by itself, so the owner of the call must call Cancel() then. The
// server does so when gRPC reports that a call was cancelled or that its deadline has passed.
class CancelToken {
 public:
  // `deadline` is a time of day, as absl::Now() returns it, not a time of SteadyNow().
  explicit CancelToken(absl::Time deadline = absl::InfiniteFuture()) : deadline_(deadline) {}
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Cancels the work and ends its wait, with DEADLINE_EXCEEDED if the deadline has passed, else
  // with CANCELLED. Later calls do nothing.
  void Cancel();

  // Returns OK, CANCELLED or DEADLINE_EXCEEDED. Cheap enough for one call every 50 microseconds.
  absl::Status Check() const;

  // Ends the wait of the work: runs the registered callback with the error `status`. Every later
  // wait ends as soon as it begins, with the `status` of the first call. Running work continues.
  void EndWait(absl::Status status);

  // Registers `callback`, which Cancel() or EndWait() runs once, with the status that ends the
  // wait. If one of them was called before, OnWaitEnd() runs `callback` before it returns. The
  // token does not know when the event comes, so it may run `callback` even after the event. A
  // second callback replaces the first, which then never runs.
  void OnWaitEnd(absl::AnyInvocable<void(absl::Status)> callback);

 private:
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  absl::Mutex mutex_;
  absl::Status wait_end_ ABSL_GUARDED_BY(mutex_);  // OK: no wait was ended.
  absl::AnyInvocable<void(absl::Status)> callback_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
