#ifndef SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_
#define SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// The wait of some work for an event. Other threads can end the wait before the event comes: End()
// runs a callback that the work has registered. Thread-safe.
class EndableWait {
 public:
  EndableWait() = default;
  EndableWait(const EndableWait&) = delete;
  EndableWait& operator=(const EndableWait&) = delete;

  // Runs the registered callback, if there is one, with the error `status`. Every later OnEnd()
  // runs its callback at once, with the `status` of the first End().
  void End(absl::Status status);

  // Registers `callback`. End() runs `callback` once, with the status that ends the wait. If End()
  // was called before, OnEnd() itself runs `callback`. EndableWait does not learn when the event
  // comes, so `callback` may run even after the event. If OnEnd() is called again before End(), the
  // new callback replaces the old one, which never runs.
  void OnEnd(absl::AnyInvocable<void(absl::Status)> callback);

 private:
  absl::Mutex mutex_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // OK until the first End().
  absl::AnyInvocable<void(absl::Status)> callback_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_ENDABLE_WAIT_H_
