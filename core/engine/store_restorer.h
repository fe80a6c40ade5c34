#ifndef SOFTLOOKUP_CORE_ENGINE_STORE_RESTORER_H_
#define SOFTLOOKUP_CORE_ENGINE_STORE_RESTORER_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/engine/lookup_counters.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Brings a store of a backup's log into the engine. First loads it, which checks its records. Then
// copies the records to the engine's log, in writes between which other writes come, at the pace
// that CopyPace sets. The last write gives the store its name. Until then the store is
// unfinished (leftovers.h), and only its bytes show, in the budget. Thread-safe.
class StoreRestorer {
 public:
  // `log` is null if nothing outlives the process. `lookups` counts the engine's lookups. The
  // arguments must outlive this object.
  StoreRestorer(const Limits& limits, CountedStores& stores, CommitLog* log, Committer& committer,
                const LookupCounters& lookups, const Clock& clock = Clock::Steady())
      : limits_(limits),
        stores_(stores),
        log_(log),
        committer_(committer),
        lookups_(lookups),
        clock_(clock) {}

  // Does what Engine::RestoreStore() says. `number` and `executor` are those of the new store.
  // `replay_count` is that of the stores before the number was taken. Blocks.
  absl::StatusOr<StoreInfo> Restore(const StoreRestore& restore, std::uint64_t number,
                                    std::uint64_t replay_count, Store::Executor executor,
                                    const CancelToken& cancel);

 private:
  // Checks what can be known before the backup is opened. INVALID_NAME, STORE_EXISTS or
  // TOO_MANY_STORES. The last write checks the same again, and decides. Then claims the tenant of
  // the new name, with the errors of CommitLog::ClaimTenant().
  absl::Status PrepareNames(const StoreRestore& restore) const;
  // Copies records from `backup` to the engine's log: those of the store with the number `from`,
  // under the number of `store`. Leaves out the name, the configuration and the revision, which the
  // last write puts. Sets `has_begun` to true once a write of the copy is staged, also if an error
  // follows.
  absl::Status Copy(const CommitLog& backup, std::uint64_t from, const Store& store,
                    std::uint64_t replay_count, const CancelToken& cancel, bool& has_begun);
  // Commits what `put` adds to a batch, which is about `bytes` bytes. While too many writes wait,
  // tries again until `cancel`, if it is not null, is cancelled or its deadline passes.
  absl::Status Commit(absl::FunctionRef<void(LogBatch&)> put, std::int64_t bytes,
                      std::uint64_t replay_count, const CancelToken* cancel);

  const Limits& limits_;
  CountedStores& stores_;
  CommitLog* const log_;
  Committer& committer_;
  const LookupCounters& lookups_;
  const Clock& clock_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_STORE_RESTORER_H_
