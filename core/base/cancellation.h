#ifndef SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
#define SOFTLOOKUP_CORE_BASE_CANCELLATION_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/endable_wait.h"

namespace softlookup {

// Tells the work of a call that the caller has cancelled the call or that the deadline has passed.
// Thread-safe.
//
// Running work polls Check(). Work that waits for an event cannot poll, so it registers a callback
// in wait(). Cancel() runs that callback. A deadline that passes does not end the wait by itself.
// So the owner of the call must call Cancel() at the deadline. The server does so when gRPC reports
// that a call was cancelled or that its deadline has passed.
class CancelToken {
 public:
  // `deadline` is a time of day, as absl::Now() returns it, not a time of SteadyNow().
  explicit CancelToken(absl::Time deadline = absl::InfiniteFuture()) : deadline_(deadline) {}
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Cancels the work and ends its wait. The wait ends with DEADLINE_EXCEEDED if the deadline has
  // passed, else with CANCELLED. A second Cancel() does nothing.
  void Cancel();

  // Returns OK, CANCELLED or DEADLINE_EXCEEDED. Cheap enough for one call every 50 microseconds.
  absl::Status Check() const;

  // The work's wait for an event. wait().End() ends a wait only: it does not change what Check()
  // returns, so running work goes on.
  EndableWait& wait() { return wait_; }

 private:
  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  EndableWait wait_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CANCELLATION_H_
