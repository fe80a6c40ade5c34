#ifndef SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
#define SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_

#include "core/base/histogram.h"
#include "core/engine/counted_stores.h"
#include "core/engine/lookup_counters.h"
#include "core/scheduler/scheduler.h"
#include "core/storage/commit_log.h"
#include "softlookup/engine.h"

namespace softlookup {

// Returns the statistics of an engine. `log` is null if nothing outlives the process.
EngineStats StatsOf(const CountedStores& stores, const LookupCounters& lookups,
                    const Scheduler& scheduler, const CommitLog* log,
                    const Histogram& log_sync_time);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
