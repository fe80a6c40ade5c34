#ifndef SOFTLOOKUP_CORE_BASE_CLOCK_H_
#define SOFTLOOKUP_CORE_BASE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup {

// A clock that tests can replace, so that they do not depend on the machine's speed. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the current time, which never goes back.
  virtual absl::Time Now() const = 0;
  // Waits until `condition` holds or Now() has reached `deadline`. The caller must hold `mutex`.
  virtual void AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                          absl::Time deadline) const = 0;

  // Waits until Now() has reached `time`.
  void SleepUntil(absl::Time time) const;

  // Returns the machine's steady clock. Its epoch is arbitrary. Changes of the time of day do not
  // affect it.
  static const Clock& Steady();
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_CLOCK_H_
