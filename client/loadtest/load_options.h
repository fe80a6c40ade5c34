#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace softlookup::loadtest {

// The clock of all times that a run measures. It does not jump when the system's time is set.
using Clock = std::chrono::steady_clock;

enum class Arrivals {
  kConstant,  // One call every 1 / rate seconds.
  kPoisson,   // Calls that many independent users make. The gaps are exponentially distributed.
};

// The load of a run. The phases of a run are the ramp, the warm-up at full load, and the
// measurement window.
struct LoadOptions {
  // Open loop: calls per second, > 0. Each call is sent when it is due, even if earlier ones have
  // not ended. Unset: closed loop.
  std::optional<double> rate;
  Arrivals arrivals = Arrivals::kPoisson;  // Open loop only.
  int senders = 1;                         // Open loop: threads that send, at least 1.
  // Open loop: most calls in flight at once, at least `senders`. Each sender may have an equal
  // share of this number in flight, rounded down. If a call is due while its sender has that many
  // in flight, the call is not sent, and counts as overflow.
  int in_flight_max = 10000;
  // Closed loop: calls in flight all the time, at least 1.
  int concurrency = 16;

  // Time over which the rate, or the concurrency, grows from 0.
  absl::Duration ramp = absl::ZeroDuration();
  absl::Duration warm_up = absl::ZeroDuration();
  absl::Duration duration = absl::Seconds(10);  // Measurement window. > 0.

  // Longest time of a call, all its attempts together. > 0. Infinite: calls have no deadline.
  absl::Duration timeout = absl::Seconds(10);
  int attempts_max = 1;    // Of a call, at least 1. 1: no retries.
  std::uint64_t seed = 1;  // Of all random draws: arrival times and requests.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_OPTIONS_H_
