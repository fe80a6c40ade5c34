#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "core/engine/memory_budget.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// How much more there is in all stores after a write, or less.
struct StoreChange {
  std::int64_t rows = 0;
  std::int64_t live_rows = 0;
};

// Sums over the stores that are served, kept as they change. Any thread may read them.
struct StoreTotals {
  std::atomic<std::int64_t> stores{0};
  std::atomic<std::int64_t> damaged_stores{0};  // Not served.
  std::atomic<std::int64_t> rows{0};
  std::atomic<std::int64_t> live_rows{0};
  // Ever appended, also to stores that are deleted since.
  std::atomic<std::int64_t> appended_rows{0};
  std::atomic<std::int64_t> appended_bytes{0};  // In float32.
};

// The stores of an engine by name, and the memory that they may take. Thread-safe, but for what the
// budget says of itself.
class StoreTable {
 public:
  // As in Limits.
  explicit StoreTable(std::int64_t memory_bytes_max) : budget_(memory_bytes_max) {}

  MemoryBudget& budget() { return budget_; }
  const MemoryBudget& budget() const { return budget_; }
  const StoreTotals& totals() const { return totals_; }

  // STORE_NOT_FOUND, INVALID_NAME about `field`, where the name stands in the request, or what is
  // wrong with the store.
  absl::StatusOr<std::shared_ptr<Store>> Find(absl::string_view field,
                                              absl::string_view name) const;
  // At most `count_max` stores that are served and whose name starts with `prefix` and comes after
  // `after`.
  ListResult List(absl::string_view prefix, absl::string_view after, std::int64_t count_max) const;

  // Keeps the name for a store to come: until Add or Release it is taken, but there is no such
  // store. STORE_EXISTS if it is taken already, TOO_MANY_STORES if `count_max` names are.
  absl::Status Reserve(const std::string& name, std::int64_t count_max);
  void Release(const std::string& name);
  // There is no store of this name yet.
  void Add(const std::string& name, std::shared_ptr<Store> store);
  // One that was kept, before anything else. If it cannot be served, it is its error; if its name
  // is lost as well, it is only counted. It stays also where that takes more memory than the stores
  // may: what was acknowledged is not lost, but no store grows until there is room.
  void AddLoaded(const std::string& name, absl::StatusOr<std::shared_ptr<Store>> store);
  // There is a store of this name.
  void Remove(absl::string_view name);
  // Readers see more, or less, in a store of this configuration.
  void OnPublished(const StoreConfig& config, const StoreChange& change);

 private:
  mutable absl::Mutex mutex_;
  absl::btree_map<std::string, absl::StatusOr<std::shared_ptr<Store>>> stores_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> reserved_ ABSL_GUARDED_BY(mutex_);
  MemoryBudget budget_;
  StoreTotals totals_;
};

absl::Status StoreNotFound(absl::string_view name);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_TABLE_H_
