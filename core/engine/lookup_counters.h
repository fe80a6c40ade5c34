#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_COUNTERS_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "core/base/histogram.h"

namespace softlookup {

// Counts the lookups of an engine that the scheduler ran, for the engine's stats. Thread-safe.
struct LookupCounters {
  // Nanoseconds that each lookup waited in the scheduler's queue, and then took to compute. Lookups
  // that failed while they ran are included. Refused lookups are not.
  Histogram queue_time{kTimeBounds};
  Histogram compute_time{kTimeBounds};
  // Sum of QueryStats::summed_rows over the head queries of all lookups that were answered.
  std::atomic<std::uint64_t> summed_rows{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_COUNTERS_H_
