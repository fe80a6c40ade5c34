#ifndef SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_
#define SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace softlookup {

// Never goes back, whatever is done to the machine's clock. Counts from an epoch of its own.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_STEADY_TIME_H_
