#ifndef SOFTLOOKUP_CLIENT_LOADTEST_RUN_LOAD_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_RUN_LOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "client/loadtest/connections.h"
#include "client/loadtest/evidence.h"
#include "client/loadtest/load_options.h"
#include "client/loadtest/load_result.h"
#include "client/loadtest/traffic.h"

namespace softlookup::loadtest {

// The state of a run while it goes on.
struct Progress {
  enum class Phase { kRamp, kWarmUp, kMeasuring, kDraining };
  Phase phase = Phase::kRamp;
  double elapsed_s = 0;  // Since the phase began; for kDraining, since the window's planned end.
  double phase_s = 0;    // Length of the phase; 0 for kDraining.
  // Over the most recent interval, about a second at most.
  double rate = 0;   // Calls per second that ended OK.
  double p50_s = 0;  // NaN before the measurement window, and if no call ended.
  double p99_s = 0;
  std::uint64_t in_flight = 0;
  // Since the run began.
  std::uint64_t errors = 0;
  std::uint64_t rejected = 0;
  std::uint64_t overflow = 0;
};

struct LoadTarget {
  const Connections* connections = nullptr;
  const Traffic* traffic = nullptr;
  Evidence* evidence = nullptr;                    // Gets what Verify() needs. May be null.
  int answers_to_keep = 0;                         // In `evidence`.
  std::string writer_prefix;                       // See CallSetup. Unique to the run.
  const std::atomic<bool>* interrupted = nullptr;  // Ends the run early. May be null.
  // May be empty. Called about once or twice a second, on the thread of RunLoad().
  std::function<void(const Progress&)> progress;
};

// Makes one run. Returns when every call has ended, at most `options.timeout` after the last one
// began.
LoadResult RunLoad(const LoadOptions& options, const LoadTarget& target);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RUN_LOAD_H_
