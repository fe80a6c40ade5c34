#ifndef SOFTLOOKUP_CORE_ENGINE_ENGINE_COUNTERS_H_
#define SOFTLOOKUP_CORE_ENGINE_ENGINE_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "core/base/histogram.h"

namespace softlookup {

// What the engine counts as it goes, for EngineStats. Thread-safe.
struct EngineCounters {
  Histogram lookup_queue_time{kTimeBounds};
  Histogram lookup_compute_time{kTimeBounds};
  Histogram pass_queries{kCountBounds};
  Histogram pass_lookups{kCountBounds};
  std::atomic<std::uint64_t> scanned_rows{0};
  std::atomic<std::uint64_t> scanned_bytes{0};
  Histogram log_sync_time{kTimeBounds};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ENGINE_COUNTERS_H_
