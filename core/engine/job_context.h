#ifndef SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
#define SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/base/histogram.h"
#include "core/base/limits.h"
#include "core/engine/ranking_budget.h"
#include "core/kernels/amx/tile_scan.h"

namespace softlookup {

// What all jobs of an engine share. Thread-safe.
struct JobContext {
  const Limits& limits;
  // The value of AttentionTask::tiles in every task of the engine.
  const std::optional<kernels::TileUnit> tiles;
  RankingBudget ranking;
  // Nanoseconds that each lookup waited in the scheduler's queue and was computed. Refused lookups
  // do not count.
  Histogram lookup_queue_time{kTimeBounds};
  Histogram lookup_compute_time{kTimeBounds};
  // Sum of QueryStats::summed_rows over the head queries of all lookups that were answered.
  std::atomic<std::uint64_t> summed_rows{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_JOB_CONTEXT_H_
