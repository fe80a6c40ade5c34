#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_RECORDS_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/parallel/fork_join_pool.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Writes the records of stores (docs/storage_format.md) and loads stores from them. In the Log
// functions, `store` is the store's number; they add changes to `batch`.

// Puts the record of a store's name.
void LogName(std::uint64_t store, absl::string_view name, LogBatch& batch);
// Puts the records of a new store without rows: name, configuration and head.
void LogNewStore(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch);
// Puts the records of a new configuration: configuration and head.
void LogConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch);
// Puts all records that an append changed. `rows` is the batch as the caller gave it; it tells
// whether the rows have ids and labels, and names the writer. `writer` is the writer's state after
// the append, or null if `rows` names none.
void LogAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch);
// Puts all records that a deletion of rows changed.
void LogDelete(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch);
// Deletes all records of a store and its name.
void LogNoStore(std::uint64_t store, LogBatch& batch);

// Returns all stores in the log, by number. A name is empty if it is lost. All names are empty if
// one of them is damaged, or if there are none, as in logs from before the first release.
absl::StatusOr<std::vector<NamedStore>> StoresIn(const CommitLog& log);

struct LoadedStore {
  std::uint64_t number = 0;
  std::string name;  // Empty if it could not be read either.
  absl::StatusOr<std::shared_ptr<Store>> store;
};

// Loads the store as it was, bit for bit. `executor` is the store's. The result's `store` is
// DATA_LOSS if a record is damaged or missing; the message names the position if that is known. It
// is UNAVAILABLE if a record could not be read, which may pass.
LoadedStore LoadStore(const NamedStore& store, const CommitLog& log, Store::Executor executor);

// Notifies `observer` of a store or of its damage.
void Notify(LoadObserver& observer, const LoadedStore& loaded);

// Loads `stores` on this thread and those of `pool`. Calls `observer` and `on_loaded` for one store
// at a time. Leaves out stores that could not be read, and then returns UNAVAILABLE.
absl::Status LoadStores(const std::vector<NamedStore>& stores, const CommitLog& log,
                        ForkJoinPool& pool, const Store::Executor& executor, LoadObserver& observer,
                        absl::FunctionRef<void(LoadedStore)> on_loaded);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_RECORDS_H_
