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

// One rate that was tried.
struct FindMaxStep {
  double rate = 0;  // Offered, calls a second.
  bool held = false;
  std::string why;                 // It did not hold.
  bool limited_by_client = false;  // It may not have held for the client's sake.
  LoadResult result;
};

struct FindMaxResult {
  std::vector<FindMaxStep> steps;   // In the order in which they were tried.
  std::optional<std::size_t> best;  // The highest rate that held, among `steps`.
  // Not the server but this client was at its limit above the best rate.
  bool limited_by_client = false;
  bool interrupted = false;
};

// Why a run does not keep the objectives: empty if it does. No call may have failed, been rejected
// or gone unsent. A client that is late makes latencies longer, never shorter: what holds all the
// same holds.
std::string WhyNotHeld(const LoadResult& result, const std::vector<Condition>& objectives);

// Searches for the highest rate of an open loop that keeps `objectives`, to 5 % of itself, by runs
// of `options`. It begins at `options.rate` or, where that is unset, at half of what a closed loop
// of `options.concurrency` reaches in a second. `tried`, which may be empty, is called after each
// step.
FindMaxResult FindMax(const LoadOptions& options, const LoadTarget& target,
                      const std::vector<Condition>& objectives,
                      const std::function<void(const FindMaxStep&)>& tried = {});

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_FIND_MAX_H_
