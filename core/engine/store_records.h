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
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Between a store and what the log keeps of it (docs/storage_format.md). `store` is its number.

// A new store, or a new configuration.
void LogConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch);
// `writer` is where the batch's writer stands now, if it has one. `rows` is what was asked for:
// whose ids and labels the rows that were appended have.
void LogAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch);
void LogDelete(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch);
void LogNoStore(std::uint64_t store, LogBatch& batch);

// The numbers of all stores in the log, ascending.
absl::StatusOr<std::vector<std::uint64_t>> StoresIn(const CommitLog& log);

struct LoadedStore {
  std::string name;  // Empty if not even that could be read.
  absl::StatusOr<std::shared_ptr<Store>> store;
};

// Brings the store back as it was, bit for bit; `executor` is for it. DATA_LOSS, naming the
// position as far as it is known, if a record is damaged or missing.
LoadedStore LoadStore(std::uint64_t store, const CommitLog& log, Store::Executor executor);

void Tell(LoadObserver& observer, const LoadedStore& loaded);

// Loads them all on the threads of `pool`. on_loaded(), which is called by one of them at a time,
// gets those whose names can be told; the observer hears of all.
void LoadStores(const std::vector<std::uint64_t>& stores, const CommitLog& log, ForkJoinPool& pool,
                const Store::Executor& executor, LoadObserver& observer,
                absl::FunctionRef<void(LoadedStore)> on_loaded);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_RECORDS_H_
