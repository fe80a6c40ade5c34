#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace softlookup::loadtest {

// All times of a run; what it measures does not jump when the clock on the wall is set.
using Clock = std::chrono::steady_clock;

enum class Arrivals {
  kConstant,  // One call every 1 / rate.
  kPoisson,   // Independent calls, as many users make them: gaps are exponential.
};

// How calls come. First the ramp, then the warm-up, at full load, then the time that is measured.
struct LoadOptions {
  // Open loop: calls a second, > 0, sent when they are due whatever became of earlier ones. Unset:
  // closed loop.
  std::optional<double> rate;
  Arrivals arrivals = Arrivals::kPoisson;  // Of an open loop.
  int senders = 1;                         // Threads that send, of an open loop. At least 1.
  // Most calls in flight at once in an open loop, at least `senders`. A call that is due beyond
  // that is not sent; it is counted as overflow.
  int in_flight_max = 10000;
  // Closed loop: so many calls are in flight all the time. At least 1.
  int concurrency = 16;

  // Over which the rate, or the concurrency, grows from 0.
  absl::Duration ramp = absl::ZeroDuration();
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration duration = absl::Seconds(10);  // Measured. > 0.

  // Of a call, with all its attempts. > 0; infinite: calls have no deadline.
  absl::Duration timeout = absl::Seconds(10);
  int attempts_max = 1;  // Of a call. 1: no retries.
  std::uint64_t seed = 1;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_
