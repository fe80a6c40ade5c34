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

// How a run is going, a few times a second.
struct Progress {
  enum class Phase { kRamp, kWarmUp, kMeasuring, kDraining };
  Phase phase = Phase::kRamp;
  double elapsed_s = 0;  // Of the phase.
  double phase_s = 0;    // It takes so long; 0 for draining.
  double rate = 0;       // Calls that ended OK a second, lately.
  double p50_s = 0;      // Lately; NaN unless it is measured.
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
  Evidence* evidence = nullptr;                    // Gets what is to be verified. May be null.
  int answers_to_keep = 0;                         // There.
  std::string writer_prefix;                       // See CallSetup. Unique to the run.
  const std::atomic<bool>* interrupted = nullptr;  // Ends the run early. May be null.
  std::function<void(const Progress&)> progress;   // May be empty. On the caller's thread.
};

// One run. Blocks until every call has ended, at most `options.timeout` after the last one began.
LoadResult RunLoad(const LoadOptions& options, const LoadTarget& target);

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_RUN_LOAD_H_
