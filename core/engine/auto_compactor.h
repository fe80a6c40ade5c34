#ifndef SOFTLOOKUP_CORE_ENGINE_AUTO_COMPACTOR_H_
#define SOFTLOOKUP_CORE_ENGINE_AUTO_COMPACTOR_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "core/base/cancellation.h"
#include "core/engine/compactor.h"
#include "core/engine/counted_stores.h"
#include "core/store/store.h"
#include "core/store/stored_blocks.h"
#include "softlookup/engine_observer.h"

namespace softlookup {

// How many rows a store holds, and how many of these a compaction would drop.
struct CompactionRows {
  std::int64_t held = 0;     // Rows that no compaction has dropped.
  std::int64_t to_drop = 0;  // Those of `held` that the next compaction drops.
};

// Counts the rows of `blocks`. Takes time in proportion to the number of blocks.
CompactionRows CountCompactionRows(const StoredBlocks& blocks);

// Compacts stores without being asked, on a thread of its own. Takes the stores from
// CountedStores::compaction_queue, one after the other. Compacts a store if at least the part
// `compact_above` of the rows that it holds could be dropped. After an error, leaves the store
// alone until it is queued again.
class AutoCompactor {
 public:
  // Opens the queue. `compact_above` must be above 0 and at most 1. `observer` may be null.
  // `stores` and `compactor` must outlive this object.
  AutoCompactor(double compact_above, CountedStores& stores, Compactor& compactor,
                std::shared_ptr<EngineObserver> observer);
  // Closes the queue. Cancels the compaction in progress, and waits until it has ended.
  ~AutoCompactor();
  AutoCompactor(const AutoCompactor&) = delete;
  AutoCompactor& operator=(const AutoCompactor&) = delete;

 private:
  // The last count of a store's rows, if it found too few rows to drop for a compaction. Also the
  // store's number of rows, and of deleted rows, at that time.
  struct Counted {
    std::weak_ptr<const Store> store;
    CompactionRows rows;
    std::int64_t row_count = 0;
    std::int64_t deleted_rows = 0;
  };

  void Run();
  void LookAt(const std::shared_ptr<Store>& store);
  void Compact(const std::shared_ptr<Store>& store);
  bool IsEnough(const CompactionRows& rows) const;
  // Returns whether IsEnough() may be true of `snapshot`, going by the store's last count.
  bool MayBeEnough(const Counted& last, const Snapshot& snapshot) const;
  void Remember(const std::shared_ptr<Store>& store, const Snapshot& snapshot,
                const CompactionRows& rows);

  const double compact_above_;
  CountedStores& stores_;
  Compactor& compactor_;
  const std::shared_ptr<EngineObserver> observer_;
  CancelToken cancel_;
  // The last counts, by the store's number. With them, a store in which few rows are deleted at a
  // time is seldom counted again. Used on thread_ alone.
  absl::flat_hash_map<std::uint64_t, Counted> counted_;
  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_AUTO_COMPACTOR_H_
