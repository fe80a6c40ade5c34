#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_TOTALS_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_TOTALS_H_

#include <atomic>
#include <cstdint>

#include "core/store/snapshot.h"
#include "softlookup/store_config.h"

namespace softlookup {

// By how much a write changes StoreTotals. Negative if a sum becomes smaller.
struct StoreChange {
  std::int64_t rows = 0;
  std::int64_t live_rows = 0;
};

// Sums over the stores of an engine, for EngineStats. Thread-safe.
class StoreTotals {
 public:
  // Counts a store that was created or loaded. `snapshot` is its newest.
  void AddStore(const Snapshot& snapshot);
  // Counts a store that is damaged, so that calls to it fail.
  void AddDamagedStore() { ++damaged_stores_; }
  // Takes back what was counted for a damaged store that is deleted.
  void RemoveDamagedStore() { --damaged_stores_; }
  // Takes back what was counted for a store that is deleted. `snapshot` is its newest.
  void RemoveStore(const Snapshot& snapshot);
  // Counts a write to a store of this configuration. Call this once readers can see the write.
  void AddWrite(const StoreConfig& config, const StoreChange& change);
  // Counts deleted rows that a compaction dropped.
  void AddDroppedRows(std::int64_t count) { dropped_rows_ += count; }
  // Counts a compaction that dropped rows. Call this once it has ended.
  void AddCompaction() { ++compactions_; }
  // Counts a compaction that nobody asked for, and that an error ended.
  void AddFailedCompaction() { ++failed_compactions_; }

  std::int64_t stores() const { return stores_; }  // Without damaged stores.
  std::int64_t damaged_stores() const { return damaged_stores_; }
  std::int64_t rows() const { return rows_; }  // Without damaged stores. Includes deleted rows.
  std::int64_t live_rows() const { return live_rows_; }
  // Rows appended since the process started. Rows of deleted stores stay counted.
  std::int64_t appended_rows() const { return appended_rows_; }
  // Bytes that the keys and values of the appended rows take in float32, whatever the store's
  // storage type.
  std::int64_t appended_bytes() const { return appended_bytes_; }
  // The next three since the process started.
  std::int64_t dropped_rows() const { return dropped_rows_; }
  std::int64_t compactions() const { return compactions_; }
  std::int64_t failed_compactions() const { return failed_compactions_; }

 private:
  std::atomic<std::int64_t> stores_{0};
  std::atomic<std::int64_t> damaged_stores_{0};
  std::atomic<std::int64_t> rows_{0};
  std::atomic<std::int64_t> live_rows_{0};
  std::atomic<std::int64_t> appended_rows_{0};
  std::atomic<std::int64_t> appended_bytes_{0};
  std::atomic<std::int64_t> dropped_rows_{0};
  std::atomic<std::int64_t> compactions_{0};
  std::atomic<std::int64_t> failed_compactions_{0};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_TOTALS_H_
