#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_STATS_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_STATS_H_

#include <cstdint>

#include "core/base/histogram.h"

namespace softlookup {

// What an engine has done, and what it holds. docs/metrics.md says what each figure means.
struct EngineStats {
  // Totals since the engine was created. Times are in nanoseconds.
  HistogramCounts lookup_queue_time;
  HistogramCounts lookup_compute_time;
  HistogramCounts pass_queries;
  HistogramCounts pass_lookups;
  std::uint64_t scanned_rows = 0;
  std::uint64_t scanned_bytes = 0;
  std::uint64_t sketched_rows = 0;
  std::uint64_t skipped_blocks = 0;
  std::uint64_t summed_rows = 0;
  std::uint64_t appended_rows = 0;
  std::uint64_t appended_bytes = 0;
  std::uint64_t compactions = 0;  // Those that dropped rows.
  // Compactions that the engine began by itself and that an error ended.
  std::uint64_t failed_compactions = 0;
  std::uint64_t dropped_rows = 0;  // Deleted rows that compactions dropped.
  HistogramCounts log_sync_time;

  // Current values.
  bool log_failed = false;
  // About how many bytes of table files are taken by records of deleted stores and of dropped rows.
  // The count is as of each deletion, or as of the engine's start for what was deleted before.
  std::uint64_t deleted_bytes = 0;
  std::int64_t damaged_stores = 0;
  std::int64_t stores = 0;
  std::uint64_t rows = 0;
  std::uint64_t live_rows = 0;
  std::int64_t store_bytes = 0;
  std::int64_t ram_used_bytes = 0;
  std::int64_t waiting_lookups = 0;
  double waiting_work = 0;  // In multiply-adds.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_STATS_H_
