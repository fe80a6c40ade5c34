#ifndef SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_

#include <string>
#include <vector>

#include "client/loadtest/load_result.h"

namespace softlookup::loadtest {

// Bounds on how late and how busy this client may be. Beyond them, the figures of a run describe
// the client and not the server.

// Open loop: the 99th percentile of lateness must be at most kLatenessFraction times the 99th
// percentile of latency, or at most kLatenessMin.
inline constexpr double kLatenessFraction = 0.25;
inline constexpr double kLatenessMin = 1e-3;  // In seconds.
// Open loop: a client is busy if it uses at least kBusyFraction of its cores, or if a sender uses
// at least kBusyFraction of one core. The lateness of a busy client must not grow. To tell, the
// median of the timeline's 99th percentiles of lateness is taken over the first and over the last
// third of the measurement window. The median of the last third must be below kLatenessMin, or
// below kLatenessGrowth times that of the first.
inline constexpr double kBusyFraction = 0.95;
inline constexpr double kLatenessGrowth = 2;
// Closed loop: no call can be late. A client that uses at least kBusyFraction of its cores is the
// bottleneck.

// Returns a sentence for each bound of this file that `result` exceeds; none if the client was not
// the bottleneck.
std::vector<std::string> BottleneckReasons(const LoadResult& result);

// Returns a sentence for each reason why `result` is invalid; none if it is valid. The reasons are
// those of BottleneckReasons(), and overflow: calls that were due but not sent. Calls that the
// server rejects are no reason. Ignores `result.invalid`.
std::vector<std::string> InvalidReasons(const LoadResult& result);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_BOTTLENECK_H_
