#ifndef SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_
#define SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace softlookup {

// Returns the steady clock's time. It never goes back, even if the time of day is changed. Its
// epoch is arbitrary.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_
