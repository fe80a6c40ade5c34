#ifndef SOFTLOOKUP_CORE_BASE_CLOCK_H_
#define SOFTLOOKUP_CORE_BASE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup {

// The time, as code sees it whose tests must not depend on the machine's speed. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes back.
  virtual absl::Time Now() const = 0;
  // Waits until `condition` holds or `deadline` has come. The caller holds `mutex`.
  virtual void AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) const = 0;

  // The machine's clock. Counts from an epoch of its own, whatever is done to the time of day.
  static const Clock& Steady();
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CLOCK_H_
