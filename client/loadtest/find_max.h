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
  double rate = 0;                 // Offered calls per second.
  bool held = false;               // The run kept the objectives.
  std::string why;                 // Why the rate did not hold; empty if it held.
  bool limited_by_client = false;  // The rate did not hold, and the reason may be the client.
  LoadResult result;
};

struct FindMaxResult {
  std::vector<FindMaxStep> steps;   // In the order in which they were tried.
  std::optional<std::size_t> best;  // Index in `steps` of the highest rate that held.
  // Whether the client may be the reason why the lowest rate above the best one did not hold.
  bool limited_by_client = false;
  bool interrupted = false;
};

// Returns why a run does not keep the objectives; empty if it keeps them. A run does not keep them
// if a call failed, was rejected or was not sent. A run with a late client can keep them, because
// lateness makes latencies longer, never shorter.
std::string WhyNotHeld(const LoadResult& result, const std::vector<Condition>& objectives);

// Searches for the highest rate of an open loop that keeps `objectives`. Each step is a run with
// `options` and another rate. Ends when the rate is known to within 5 %, after 24 steps, or when
// the next rate would be below 0.1 calls per second. An interruption also ends the search, and
// drops the step in progress. The first rate is `options.rate`. If that is unset, a closed loop
// runs first, for at most a second. The first rate is then half the rate of this loop, and at least
// 1 call per second. Calls `tried`, which may be empty, after each step.
FindMaxResult FindMax(const LoadOptions& options, const LoadTarget& target,
                      const std::vector<Condition>& objectives,
                      const std::function<void(const FindMaxStep&)>& tried = {});

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_FIND_MAX_H_
