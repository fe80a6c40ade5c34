#ifndef SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
#define SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_

#include "core/engine/counted_stores.h"
#include "core/engine/lookup_counters.h"
#include "core/scheduler/scheduler.h"
#include "softlookup/engine.h"

namespace softlookup {

// Returns the statistics of an engine's stores, lookups and passes. Leaves `log_sync_time` and
// `log_failed` at their defaults.
EngineStats StatsOf(const CountedStores& stores, const LookupCounters& lookups,
                    const Scheduler& scheduler);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
