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

// The state of a run in progress.
struct Progress {
  enum class Phase { kRamp, kWarmUp, kMeasuring, kDraining };
  Phase phase = Phase::kRamp;
  // Time since the phase began. For kDraining, time since the planned end of the measurement
  // window, which is negative if the run was interrupted before.
  double elapsed_s = 0;
  double phase_s = 0;  // Length of the phase; 0 for kDraining.
  // The three figures below cover the most recent interval, of about a second at most.
  double rate = 0;   // Calls per second that ended OK.
  double p50_s = 0;  // NaN before the measurement window, and if no call ended.
  double p99_s = 0;
  std::uint64_t in_flight = 0;  // Calls in flight at this moment.
  // The three counts below are since the run began.
  std::uint64_t errors = 0;
  std::uint64_t rejected = 0;
  std::uint64_t overflow = 0;
};

struct LoadTarget {
  const Connections* connections = nullptr;
  const Traffic* traffic = nullptr;
  Evidence* evidence = nullptr;  // Keeps what Verify() needs. May be null.
  int answers_to_keep = 0;       // How many answers `evidence` keeps, roughly.
  // Prefix of the writers' names, unique to the run. Used only if calls are retried: see CallSetup.
  std::string writer_prefix;
  const std::atomic<bool>* interrupted = nullptr;  // Ends the run early. May be null.
  // May be empty. Called about once or twice a second, on the thread of RunLoad().
  std::function<void(const Progress&)> progress;
};

// Makes one run. Returns when every call has ended, so at most `options.timeout` after the last
// call began. A second after an interruption, the run cancels the calls that are still in flight.
LoadResult RunLoad(const LoadOptions& options, const LoadTarget& target);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RUN_LOAD_H_
