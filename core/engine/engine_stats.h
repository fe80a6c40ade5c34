#ifndef SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
#define SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_

#include "core/engine/counted_stores.h"
#include "core/engine/job_context.h"
#include "core/scheduler/scheduler.h"
#include "softlookup/engine.h"

namespace softlookup {

// Returns the counters of an engine's stores, jobs and passes. Leaves those of the log at 0.
EngineStats StatsOf(const CountedStores& stores, const JobContext& jobs,
                    const Scheduler& scheduler);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ENGINE_STATS_H_
