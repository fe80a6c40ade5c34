#ifndef SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_
#define SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/engine/write_context.h"
#include "core/parallel/fork_join_pool.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Loads stores from their records (docs/storage_format.md).

// Returns all stores in the log, ordered by number. A store's name is empty if it is lost. All
// names are empty if the record of one name is damaged. All names are also empty if the log has no
// records of names, as in logs from before the first release.
absl::StatusOr<std::vector<NamedStore>> StoresIn(const CommitLog& log);

struct LoadedStore {
  std::uint64_t number = 0;
  std::string name;  // Empty if neither the name's record nor the configuration was readable.
  absl::StatusOr<std::shared_ptr<Store>> store;
  StoreInfo damaged;  // What is known of the store if it is DATA_LOSS.
};

// Loads the store as it was, bit for bit. `executor` is the store's. It may be null if no write
// follows. The result's `store` is DATA_LOSS if a record is damaged or missing. The error's
// message names the position if that is known, and says what to do. The result's `store` is
// UNAVAILABLE if a record could not be read for another reason, so that a later attempt may
// succeed.
LoadedStore LoadStore(const NamedStore& store, const CommitLog& log, Store::Executor executor);

// Counts `loaded` in the budget and the totals of `writes`. Adds it to the table of stores, unless
// it is damaged and its name is lost or invalid.
void AddLoaded(LoadedStore loaded, WriteContext& writes);

// Calls observer.OnStore() if `loaded` has a store, otherwise observer.OnDamage() with its error.
void Notify(LoadObserver& observer, const LoadedStore& loaded);

// Loads `stores` on this thread and those of `pool`. Calls `observer` and `on_loaded` for one store
// at a time, on any of these threads, damaged stores included. For a store that is UNAVAILABLE,
// calls neither, and at the end returns UNAVAILABLE.
absl::Status LoadStores(const std::vector<NamedStore>& stores, const CommitLog& log,
                        ForkJoinPool& pool, const Store::Executor& executor, LoadObserver& observer,
                        absl::FunctionRef<void(LoadedStore)> on_loaded);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_
