#ifndef SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_
#define SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// Ends the wait of some work for an event, by a callback that the work registers. Thread-safe.
class EndableWait {
 public:
  EndableWait() = default;
  EndableWait(const EndableWait&) = delete;
  EndableWait& operator=(const EndableWait&) = delete;

  // Runs the registered callback with the error `status`. Every later wait ends as soon as it
  // begins, with the `status` of the first call.
  void End(absl::Status status);

  // Registers `callback`, which End() runs once, with the status that ends the wait. If End() was
  // called before, OnEnd() runs `callback` before it returns. Nobody says here when the event
  // comes, so `callback` may run even after the event. A second callback replaces the first, which
  // then never runs.
  void OnEnd(absl::AnyInvocable<void(absl::Status)> callback);

 private:
  absl::Mutex mutex_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // OK: no wait was ended.
  absl::AnyInvocable<void(absl::Status)> callback_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_
