#ifndef SOFTLOOKUP_CORE_ENGINE_READ_BLOCKS_H_
#define SOFTLOOKUP_CORE_ENGINE_READ_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/storage/commit_log.h"
#include "core/store/snapshot.h"
#include "core/store/store_editor.h"

namespace softlookup {

// Reads the rows of the blocks [begin, end) of store number `store` from its log. `snapshot` must
// be one of the store. The blocks must be full. ROWS_COMPACTED if the log does not have the rows
// that the snapshot has: another compaction has dropped some of them since.
absl::StatusOr<std::vector<StoreEditor::ReadBlock>> ReadBlocks(const CommitLog& log,
                                                               std::uint64_t store,
                                                               const Snapshot& snapshot,
                                                               std::int64_t begin, std::int64_t end,
                                                               const CancelToken& cancel);

// Returns `snapshot`, but with the rows of block `index`, which must not be resident. The errors
// are those of ReadBlocks().
absl::StatusOr<std::shared_ptr<const Snapshot>> WithBlock(
    const CommitLog& log, std::uint64_t store, const std::shared_ptr<const Snapshot>& snapshot,
    std::int64_t index);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_READ_BLOCKS_H_
