#ifndef SOFTLOOKUP_CORE_ENGINE_PUT_RECORDS_H_
#define SOFTLOOKUP_CORE_ENGINE_PUT_RECORDS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/storage/commit_log.h"
#include "core/store/store.h"

namespace softlookup {

// These functions put the records of a store (docs/storage_format.md) into `batch`, which the
// caller then commits to the log. `store` is the store's number.

// Puts the record of a store's name.
void PutName(std::uint64_t store, absl::string_view name, LogBatch& batch);
// Puts the records of a new store without rows: name, configuration and revision.
void PutNewStore(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch);
// Puts the records of a new configuration: configuration and revision.
void PutConfig(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
               LogBatch& batch);
// Puts all records that an append changed. `rows` is the append's batch. Only two things are read
// from it: whether the rows have ids or labels, and the writer's name. `writer` is the writer's
// state after the append, or null if `rows` names no writer.
void PutAppend(std::uint64_t store, const AppendOutcome& outcome, const RowBatch& rows,
               const WriterState* writer, LogBatch& batch);
// Puts all records that a deletion of rows changed.
void PutDeletion(std::uint64_t store, const DeleteOutcome& outcome, LogBatch& batch);

// The rows that one kRows record of the log has: `row_count` from `first_position` on.
struct RowSpan {
  std::uint64_t first_position = 0;
  std::uint64_t row_count = 0;
  std::uint64_t end() const { return first_position + row_count; }
};
// Cuts positions [begin, end) into spans of at most kBlocksPerSpan blocks. `begin` must be the
// first position of a block.
std::vector<RowSpan> SpansOf(std::uint64_t begin, std::uint64_t end, std::int64_t block_rows);
inline constexpr std::int64_t kBlocksPerSpan = 16;
// Puts what a compaction left of the blocks [begin, end), and deletes the records that had their
// rows before. `spans` are the log's records that have a row of these blocks, in order. A record
// that also has rows of blocks outside of [begin, end) is cut at the edges of this range. What
// follows the range becomes the records that SpansOf() returns, so that a long record is rewritten
// once, however many compactions meet it.
void PutCompaction(std::uint64_t store, const CompactOutcome& outcome, std::int64_t begin,
                   std::int64_t end, absl::Span<const RowSpan> spans, LogBatch& batch);

// Deletes all records of a store, that of its name included.
void DeleteRecords(std::uint64_t store, LogBatch& batch);

// Marks a store as unfinished. Call this in the batch of its first records. A store that is
// unfinished has no name yet.
void PutUnfinished(std::uint64_t store, LogBatch& batch);
// Puts the records that make an unfinished store a store: those of PutNewStore(). Deletes its mark.
void PutFinished(std::uint64_t store, const Snapshot& snapshot, absl::Time create_time,
                 LogBatch& batch);
// Deletes all records of an unfinished store, and its mark.
void DeleteUnfinished(std::uint64_t store, LogBatch& batch);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_PUT_RECORDS_H_
