#ifndef SOFTLOOKUP_TESTS_TESTING_PASSING_TIME_H_
#define SOFTLOOKUP_TESTS_TESTING_PASSING_TIME_H_

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace softlookup::testing {

// How long the test waits for what must come. Many times what it takes, so that no slow machine
// fails.
inline constexpr absl::Duration kPatience = absl::Minutes(2);

// Lets time pass: while a fault goes on, and between two attempts. No verdict depends on it.
inline void LetPass(absl::Duration time) {
  const absl::Notification never;
  never.WaitForNotificationWithTimeout(time);
}

// Waits until holds() returns true, and leaves the cores to others in between. Returns false if it
// has not within `time`.
inline bool AwaitThat(absl::FunctionRef<bool()> holds, absl::Duration time = kPatience) {
  const absl::Time deadline = absl::Now() + time;
  absl::Duration pause = absl::Milliseconds(1);
  while (!holds()) {
    if (absl::Now() >= deadline) return false;
    LetPass(pause);
    pause = std::min(2 * pause, absl::Milliseconds(50));
  }
  return true;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_PASSING_TIME_H_
