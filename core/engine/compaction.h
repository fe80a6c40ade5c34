#ifndef SOFTLOOKUP_CORE_ENGINE_COMPACTION_H_
#define SOFTLOOKUP_CORE_ENGINE_COMPACTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/engine/put_records.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Drops the deleted rows of `store` block by block, from RAM and from the log. Lookups, appends and
// deletions go on meanwhile. Returns what it dropped. `log` may be null. At most one compaction of
// a store may run at a time. After an error, or once `cancel` says so, what was dropped stays so.
absl::StatusOr<CompactionResult> CompactStore(CountedStores& stores,
                                              const std::shared_ptr<Store>& store,
                                              const CommitLog* log, Committer& committer,
                                              const CancelToken& cancel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_COMPACTION_H_
