#ifndef SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_

#include <string>
#include <vector>

#include "client/loadtest/load_result.h"

namespace softlookup::loadtest {

// Bounds beyond which figures tell of the client and not of the server.

// Open loop: sends may be late by a quarter of the latency that is measured, or by a millisecond
// where that is more, both at the 99th percentile.
inline constexpr double kLatenessPart = 0.25;
inline constexpr double kLatenessMin = 1e-3;  // In seconds.
// Open loop: a client that uses so much of its cores, or of one for a sender, must not get later:
// not twice as late in the last third of the time as in the first (99th percentile).
inline constexpr double kBusyPart = 0.95;
inline constexpr double kLatenessGrowth = 2;
// Closed loop: nothing is ever due, so using so much of all cores is enough.

// A sentence for each way in which the client was the bottleneck; none if it was not.
std::vector<std::string> BottleneckReasons(const LoadResult& result);

// A sentence for each reason why `result` is invalid; none if it is valid: those of
// BottleneckReasons(), and overflow, calls that were due and not sent. Calls that the server
// refuses are none. Does not look at `result.invalid`.
std::vector<std::string> InvalidReasons(const LoadResult& result);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_
