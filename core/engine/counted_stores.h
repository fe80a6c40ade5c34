#ifndef SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_
#define SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_

#include <atomic>
#include <cstdint>

#include "core/engine/byte_budget.h"
#include "core/engine/compaction_queue.h"
#include "core/engine/kept_snapshots.h"
#include "core/engine/store_table.h"
#include "core/engine/store_totals.h"

namespace softlookup {

// The stores of an engine, and counts of what they hold: their bytes of RAM in the budget, and
// their rows in the totals. Code that changes a store must update both counts, let the newest
// snapshot be kept before it publishes the next one, and queue the store for AutoCompactor if
// MayDropMore(). Thread-safe, except that only one write at a time may check
// the budget and add to it (ByteBudget).
struct CountedStores {
  // `ram_bytes_max` is as in Limits.
  explicit CountedStores(std::int64_t ram_bytes_max)
      : budget(ram_bytes_max), kept_snapshots(KeptSnapshots::BytesMax(ram_bytes_max), budget) {}

  StoreTable table;
  ByteBudget budget;
  StoreTotals totals;
  CompactionQueue compaction_queue;
  KeptSnapshots kept_snapshots;
  // How many entries of other replicas have changed the stores (entry_replay.h).
  std::atomic<std::uint64_t> replay_count{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_
