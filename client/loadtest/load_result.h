#ifndef SOFTLOOKUP_CLIENT_LOADTEST_LOAD_RESULT_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_LOAD_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/recorder.h"

namespace softlookup::loadtest {

// What happened in one interval of the measurement window. The last points can be intervals after
// the window, in which calls from the window ended.
struct TimelinePoint {
  double begin_s = 0;  // Since the measurement window began.
  double end_s = 0;
  // Calls that ended in the interval, no matter when they were due.
  std::uint64_t ok = 0;
  std::uint64_t rejected = 0;
  std::uint64_t errors = 0;
  std::uint64_t overflow = 0;   // Calls that were due in the interval but not sent.
  std::uint64_t in_flight = 0;  // At the interval's end.
  // Latency of the calls that were due in the window and ended in the interval, in seconds; NaN if
  // there are none.
  double p50_s = 0;
  double p99_s = 0;
  double lateness_p99_s = 0;  // Of the calls that were sent in the interval; NaN if there are none.
};

// The CPU time that the client itself used.
struct ClientUse {
  double cores_used = 0;  // CPU time over wall time, in the measurement window.
  double cores = 1;       // Available to the process.
  double sender = 0;      // LoadLoop::sender_use().
};

struct LoadResult {
  LoadOptions options;
  absl::Time begin_time;  // When the measurement window began.
  double measured_s = 0;  // Length of the window, shorter if the run was interrupted.
  bool interrupted = false;
  Tally tally;
  std::vector<TimelinePoint> timeline;
  ClientUse client;
  std::map<grpc::StatusCode, std::string> messages;  // See Recorder::FirstMessages().
  std::vector<std::string> invalid;                  // See InvalidReasons().

  // Returns the calls per second that ended OK in the measurement window.
  double rate() const { return measured_s > 0 ? tally.ok_meanwhile / measured_s : 0; }
  // Returns the calls per second that were due (open loop) or sent (closed loop) in the window.
  double offered_rate() const;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_RESULT_H_
