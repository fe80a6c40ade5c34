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

// Tells work that its caller no longer wants it. Thread-safe.
//
// Running work polls the token, which also knows the deadline. Work that waits for an event cannot
// poll, so it registers a callback. The owner of the call must Cancel() at the deadline, as gRPC
// does. Ending a wait does not end work that runs.
class CancelToken {
 public:
  explicit CancelToken(absl::Time deadline = absl::InfiniteFuture()) : deadline_(deadline) {}
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Cancels the work and ends its wait. The status names the deadline if that has passed. Later
  // calls do nothing.
  void Cancel();

  // OK, or CANCELLED / DEADLINE_EXCEEDED. Cheap enough for one call every 50 microseconds.
  absl::Status Check() const;

  // Ends the wait of the work with the error `status`, now or as soon as a wait begins, by running
  // the registered callback. Running work continues.
  void EndWait(absl::Status status);

  // Registers `callback`, which Cancel() or EndWait() runs with the status that ends the wait. Runs
  // it here if one of them has been called. It may run after the wait has ended by itself. A second
  // callback replaces the first.
  void OnWaitEnd(absl::AnyInvocable<void(absl::Status)> callback);

 private:
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  absl::Mutex mutex_;
  absl::Status wait_end_ ABSL_GUARDED_BY(mutex_);  // OK: not ended.
  absl::AnyInvocable<void(absl::Status)> callback_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
