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

// What happened in a part of the time that is measured, by when it happened. The last part may
// reach beyond it: calls that were in flight at the end.
struct TimelinePoint {
  double begin_s = 0;  // Since the measuring began.
  double end_s = 0;
  std::uint64_t ok = 0;  // Calls that ended, whenever they were due.
  std::uint64_t rejected = 0;
  std::uint64_t errors = 0;
  std::uint64_t overflow = 0;
  std::uint64_t in_flight = 0;  // At its end.
  // Of calls that ended meanwhile, in seconds; NaN if none did.
  double p50_s = 0;
  double p99_s = 0;
  double lateness_p99_s = 0;
};

// What the client itself used.
struct ClientUse {
  double cores_used = 0;  // CPU time over time, while it was measured.
  double cores = 1;       // Available to the process.
  double sender = 0;      // Part of a core of the busiest sender. Open loop.
};

struct LoadResult {
  LoadOptions options;
  absl::Time begin_time;  // Of the measuring.
  double measured_s = 0;
  bool interrupted = false;
  Tally tally;
  std::vector<TimelinePoint> timeline;
  ClientUse client;
  std::map<grpc::StatusCode, std::string> messages;  // The first one of each code that failed.
  std::vector<std::string> invalid;                  // Why the figures are the client's, if so.

  // Calls that ended OK a second, while it was measured.
  double rate() const { return measured_s > 0 ? tally.ok_meanwhile / measured_s : 0; }
  // Calls that were due or sent a second.
  double offered_rate() const;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_LOAD_RESULT_H_
