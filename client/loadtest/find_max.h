#ifndef SOFTLOOKUP_CLIENT_LOADTEST_FIND_MAX_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_FIND_MAX_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/loadtest/condition.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/load_result.h"
#include "client/loadtest/run_load.h"

namespace softlookup::loadtest {

// One rate that the search tried.
struct FindMaxStep {
  double rate = 0;  // Offered calls per second.
  bool held = false;
  std::string why;                 // Why the rate did not hold; empty if it held.
  bool limited_by_client = false;  // The rate did not hold, and the client can be the reason.
  LoadResult result;
};

struct FindMaxResult {
  std::vector<FindMaxStep> steps;   // In the order in which they were tried.
  std::optional<std::size_t> best;  // Index in `steps` of the highest rate that held.
  // Whether the client can be the reason why the lowest rate above the best one did not hold.
  bool limited_by_client = false;
  bool interrupted = false;
};

// Returns why a run does not keep the objectives; empty if it does. A run in which a call failed,
// was rejected or was not sent does not keep them. A run whose client was late can keep them:
// lateness makes latencies longer, never shorter.
std::string WhyNotHeld(const LoadResult& result, const std::vector<Condition>& objectives);

// Searches for the highest rate of an open loop that keeps `objectives`, to 5 % of itself. Each
// step is a run with `options` and another rate; there are at most 24. The first rate is
// `options.rate`. If that is unset, it is half the rate of a closed loop with `options`, run for at
// most a second. Calls `tried`, which may be empty, after each step.
FindMaxResult FindMax(const LoadOptions& options, const LoadTarget& target,
                      const std::vector<Condition>& objectives,
                      const std::function<void(const FindMaxStep&)>& tried = {});

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_FIND_MAX_H_
