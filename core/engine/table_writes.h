#ifndef SOFTLOOKUP_CORE_ENGINE_TABLE_WRITES_H_
#define SOFTLOOKUP_CORE_ENGINE_TABLE_WRITES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "core/engine/byte_budget.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/store/store.h"
#include "softlookup/store_config.h"

namespace softlookup {

// These functions make the writes that change which stores there are, and their names. Callers must
// have checked everything in the arguments that does not depend on earlier writes. The writes check
// the rest. `stores` must outlive the writes.

// Makes the write that creates a store without rows. `number` and `executor` are those of the new
// store, and `replay_count` is that of the stores before the number was taken.
std::unique_ptr<Write> MakeCreateStore(CountedStores& stores, std::uint64_t number,
                                       std::uint64_t replay_count, StoreConfig config,
                                       Store::Executor executor, std::int64_t store_count_max,
                                       WriteCallback<StoreInfo> callback);

// Makes the write that turns an unfinished store, whose rows are in the log already, into a store
// (PutFinished()). `reserved` holds the store's bytes in the budget. The write counts them as bytes
// of stores and resets `reserved` when it is staged. `reserved` must live until the write answers.
std::unique_ptr<Write> MakeAddStore(CountedStores& stores, std::shared_ptr<Store> store,
                                    std::uint64_t replay_count,
                                    std::optional<ByteBudget::Reserved>& reserved,
                                    std::int64_t store_count_max,
                                    WriteCallback<StoreInfo> callback);

// Makes the write that deletes the store `name`, which may be damaged.
std::unique_ptr<Write> MakeDeleteStore(CountedStores& stores, std::string name,
                                       absl::AnyInvocable<void(absl::Status)> callback);

// Makes the write of Engine::RenameStore().
std::unique_ptr<Write> MakeRenameStore(CountedStores& stores, StoreRename rename,
                                       WriteCallback<StoreRenamed> callback);

// Ends a store that is deleted. Call this once no call finds it any more. Calls that wait for one
// of its revisions get `status`.
void Retire(Store& store, absl::Status status, CountedStores& stores);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_TABLE_WRITES_H_
