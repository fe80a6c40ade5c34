#ifndef SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_
#define SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/engine/byte_budget.h"
#include "core/engine/kept_snapshots.h"
#include "core/engine/store_table.h"
#include "core/engine/store_totals.h"
#include "core/engine/waiting_stores.h"
#include "core/store/snapshot.h"
#include "core/store/store.h"

namespace softlookup {

// The stores of an engine, and counts of what they hold: their bytes of RAM in the budget, and
// their rows in the totals. Code that changes a store must update both counts, let the newest
// snapshot be kept before it publishes the next one, queue the store for AutoCompactor if
// MayDropMore(), and call QueueForResidency() once the change is published. Thread-safe, except
// that only one write at a time may check the budget and add to it (ByteBudget).
struct CountedStores {
  // `ram_bytes_max` is as in Limits. `node_name` is this server's in its group, and empty if it is
  // in none.
  explicit CountedStores(std::int64_t ram_bytes_max, std::string node_name = "")
      : node(std::move(node_name)),
        budget(ram_bytes_max),
        kept_snapshots(KeptSnapshots::BytesMax(ram_bytes_max), budget) {}

  // Does what ByteBudget::Check() does, but first lets rows go that are kept for lookups alone, if
  // there is no room otherwise.
  absl::Status CheckRoom(std::int64_t growth, std::int64_t own_reserved_bytes) {
    if (budget.Check(growth, own_reserved_bytes).ok()) return absl::OkStatus();
    kept_snapshots.DropEvicted();
    return budget.Check(growth, own_reserved_bytes);
  }

  // Queues a store for RangeResidency, if its newest snapshot, `snapshot`, is not whole in RAM
  // or should not be.
  void QueueForResidency(const std::shared_ptr<Store>& store, const Snapshot& snapshot) {
    if (snapshot.config().ranges.empty() && snapshot.stored_blocks().evicted_count() == 0) return;
    residency_queue.Add(store);
  }

  const std::string node;
  StoreTable table;
  ByteBudget budget;
  StoreTotals totals;
  WaitingStores compaction_queue;
  WaitingStores residency_queue;
  KeptSnapshots kept_snapshots;
  // How many entries of other replicas have changed the stores (entry_replay.h).
  std::atomic<std::uint64_t> replay_count{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COUNTED_STORES_H_
