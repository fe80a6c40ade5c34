#ifndef SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_
#define SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/engine/counted_stores.h"
#include "core/parallel/fork_join_pool.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Loads stores from their records (docs/storage_format.md).

// Returns all stores in the log, ordered by number. A store whose name is lost has an empty name.
// All names are empty if the record of one name is damaged, or if the log has no records of names.
// Logs from before the first release have none. An unfinished store (leftovers.h) is no store.
absl::StatusOr<std::vector<NamedStore>> StoresIn(const CommitLog& log);

struct LoadedStore {
  std::uint64_t number = 0;
  std::string name;  // Empty if neither the name's record nor the configuration was readable.
  absl::StatusOr<std::shared_ptr<Store>> store;
  StoreInfo damaged;  // What is known of the store if `store` is DATA_LOSS.
};

// Loads the store as it was, bit for bit, but for the rows that the server `node` does not keep in
// RAM (KeptRanges). `executor` is the store's. It may be null if no write
// follows. The result's `store` is DATA_LOSS if a record is damaged or missing. The error's
// message names the position if that is known, and says what to do. The result's `store` is
// UNAVAILABLE if a record could not be read for another reason, so that a later attempt may
// succeed.
LoadedStore LoadStore(const NamedStore& store, const CommitLog& log, Store::Executor executor,
                      const std::string& node = "");

// How LoadStoreAs() loads a store of another log than the engine's.
struct LoadAs {
  NamedStore store;          // The number and the name that the loaded store gets.
  Store::Executor executor;  // The store's.
  bool keeps_ranges = false;
  // Called before room is made for the rows, with the bytes that these take. The rest of a store's
  // bytes is known once the store is loaded. An error ends the loading.
  std::function<absl::Status(std::int64_t bytes)> make_room;
  const CancelToken& cancel;  // Ends the loading.
};

// Loads the store as LoadStore() does, but gives it another number and another name, takes its
// ranges away unless as.keeps_ranges, and calls as.make_room(). The result's `store` is CANCELLED,
// DEADLINE_EXCEEDED or RESOURCE_EXHAUSTED if `cancel` or make_room() ended the loading. `node` is
// as in LoadStore().
LoadedStore LoadStoreAs(const NamedStore& store, const CommitLog& log, const LoadAs& as,
                        const std::string& node);

// Counts `loaded` in the totals and, unless it is damaged, its bytes in the budget. Adds it to the
// table, unless it is damaged and its name is lost or invalid.
void AddLoaded(LoadedStore loaded, CountedStores& stores);

// Calls observer.OnStore() if `loaded` has a store, otherwise observer.OnDamage() with its error.
void Notify(LoadObserver& observer, const LoadedStore& loaded);

// Loads all stores of `log` into `stores`, on this thread and those of `pool`. `executor` is that
// of every store. Calls `observer` for one store at a time, on any of these threads. Adds a damaged
// store as such, unless its name is lost or invalid.
//
// If StoresIn() finds no names, writes the records of names anew. Deletes the unfinished stores.
// Then, if there were names and no store is damaged, clears the leftovers (leftovers.h). If these
// can all be read, lets the log compact its records. In all other cases, calls CountLeftovers(),
// and observer.OnDiskKept() with the reason.
//
// Returns the largest number that a store or a leftover may have, as LastNumberIn() does. Errors:
// those of StoresIn(); those of CommitLog::Commit() if the names cannot be written; UNAVAILABLE if
// a store cannot be read for another reason than damage. After an error, `stores` may have some of
// the stores.
absl::StatusOr<std::uint64_t> LoadStores(CommitLog& log, ForkJoinPool& pool,
                                         const Store::Executor& executor, LoadObserver& observer,
                                         CountedStores& stores);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOAD_STORES_H_
