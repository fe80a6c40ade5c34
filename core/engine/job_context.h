#ifndef SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
#define SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/base/histogram.h"
#include "core/base/limits.h"
#include "core/engine/ranking_memory.h"
#include "core/kernels/amx/tile_scan.h"

namespace softlookup {

// What all jobs of an engine share. Thread-safe.
struct JobContext {
  const Limits& limits;
  // The CPU's matrix unit, as in AttentionTask.
  const std::optional<kernels::TileUnit> tiles;
  RankingMemory ranking;
  // Nanoseconds of each lookup.
  Histogram lookup_queue_time{kTimeBounds};
  Histogram lookup_compute_time{kTimeBounds};
  // Sum of QueryStats::summed_rows over the head queries of all lookups that were answered.
  std::atomic<std::uint64_t> summed_rows{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
