#include "core/engine/engine_stats.h"

#include <cstdint>

namespace softlookup {

EngineStats StatsOf(const CountedStores& stores, const LookupCounters& lookups,
                    const Scheduler& scheduler, const CommitLog* log,
                    const Histogram& log_sync_time) {
  const StoreTotals& totals = stores.totals;
  const PassCounters& scans = scheduler.counters();
  return {.lookup_queue_time = lookups.queue_time.counts(),
          .lookup_compute_time = lookups.compute_time.counts(),
          .pass_queries = scans.queries_per_pass.counts(),
          .pass_lookups = scans.jobs_per_pass.counts(),
          .scanned_rows = scans.rows,
          .scanned_bytes = scans.bytes,
          .sketched_rows = scans.sketched_rows,
          .skipped_blocks = scans.skipped_blocks,
          .summed_rows = lookups.summed_rows,
          .appended_rows = static_cast<std::uint64_t>(totals.appended_rows()),
          .appended_bytes = static_cast<std::uint64_t>(totals.appended_bytes()),
          .compactions = static_cast<std::uint64_t>(totals.compactions()),
          .failed_compactions = static_cast<std::uint64_t>(totals.failed_compactions()),
          .dropped_rows = static_cast<std::uint64_t>(totals.dropped_rows()),
          .log_sync_time = log_sync_time.counts(),
          .log_failed = log != nullptr && log->has_failed(),
          .deleted_bytes = log == nullptr ? 0 : log->deleted_bytes(),
          .damaged_stores = totals.damaged_stores(),
          .stores = totals.stores(),
          .rows = static_cast<std::uint64_t>(totals.rows()),
          .live_rows = static_cast<std::uint64_t>(totals.live_rows()),
          .store_bytes = stores.budget.store_bytes(),
          .ram_used_bytes = stores.budget.used_bytes(),
          .waiting_lookups = scheduler.waiting_jobs(),
          .waiting_work = scheduler.waiting_cost()};
}

}  // namespace softlookup
