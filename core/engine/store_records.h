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

// Between a store and what the log keeps of it (docs/storage_format.md). `store` is its number.

// A store's name, a new store with its name, and a new configuration.
void LogName(std::uint64_t store, absl::string_view name, LogBatch& batch);
void LogNewStore(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch);
void LogConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch);
// `writer` is where the batch's writer stands now, if it has one. `rows` is what was asked for:
// whose ids and labels the rows that were appended have.
void LogAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch);
void LogDelete(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch);
void LogNoStore(std::uint64_t store, LogBatch& batch);

// All stores in the log, by number. Their names are empty if those are damaged, lost, or missing,
// as versions before the first release left them.
absl::StatusOr<std::vector<NamedStore>> StoresIn(const CommitLog& log);

struct LoadedStore {
  std::uint64_t number = 0;
  std::string name;  // Empty if not even that could be read.
  absl::StatusOr<std::shared_ptr<Store>> store;
};

// Brings the store back as it was, bit for bit; `executor` is for it. DATA_LOSS, naming the
// position as far as it is known, if a record is damaged or missing; UNAVAILABLE if one could not
// be read, which may pass.
LoadedStore LoadStore(const NamedStore& store, const CommitLog& log, Store::Executor executor);

// Reports a store, or its damage, to `observer`.
void Notify(LoadObserver& observer, const LoadedStore& loaded);

// Loads them all on the threads of `pool`. on_loaded() is called by one of them at a time.
// UNAVAILABLE if some could not be read.
absl::Status LoadStores(const std::vector<NamedStore>& stores, const CommitLog& log,
                        ForkJoinPool& pool, const Store::Executor& executor, LoadObserver& observer,
                        absl::FunctionRef<void(LoadedStore)> on_loaded);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_RECORDS_H_
