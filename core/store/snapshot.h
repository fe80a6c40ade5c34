#ifndef SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_
#define SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/blocks_summary.h"
#include "core/attention/positioned_block.h"
#include "core/memory/running_memory.h"
#include "core/store/row_tags.h"
#include "core/store/store_lease.h"
#include "core/store/store_memories.h"
#include "core/store/stored_blocks.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

// A store as of one revision, read by position: immutable, cheap to make, and safe to read on any
// thread for as long as it is held.
class Snapshot {
 public:
  const StoreConfig& config() const { return *config_; }
  std::uint64_t revision() const { return revision_; }
  std::uint64_t row_count() const { return static_cast<std::uint64_t>(stored_blocks_.row_count()); }
  std::uint64_t live_row_count() const { return row_count() - deleted_count_; }
  std::uint64_t deleted_row_count() const { return deleted_count_; }
  // Bytes of RAM that the store takes, with the allocator's overhead. Bytes that only older
  // snapshots hold do not count, nor do all_blocks() and the log's buffers. These count:
  // - rows, in blocks and packed, with the room reserved for more;
  // - the ids, labels and masks of rows; the sketches and bounds of blocks;
  // - the state of each running memory before every block but the first, and after the last row;
  // - the tables of ids, labels and writers; the configuration; the fixed part of a store.
  std::uint64_t byte_size() const { return byte_size_; }
  // Returns the heap bytes that only this snapshot holds, if `later` is the next one of the store.
  // Counts all_blocks() as made. Takes time in proportion to the blocks that the write has copied.
  std::int64_t BytesNotIn(const Snapshot& later) const;
  // Returns the snapshot's rows by block, with the tags, masks, bounds and memories of each block.
  const StoredBlocks& stored_blocks() const { return stored_blocks_; }

  using Blocks = StoredBlocks::Blocks;
  // Returns the blocks that overlap positions [begin, end), each with all its live rows. `end` must
  // be at most row_count().
  Blocks BlocksOf(std::uint64_t begin, std::uint64_t end) const {
    return stored_blocks_.BlocksOf(begin, end);
  }

  // All blocks, and what lookups have to know of all of them together.
  struct AllBlocks {
    Blocks blocks;
    BlocksSummary summary;
  };
  // Returns BlocksOf(0, row_count()) with their summary. The first call makes them, so that other
  // lookups need not walk over all blocks.
  const AllBlocks& all_blocks() const;

  // Returns this snapshot, but with the rows of block `index`, which must not be resident.
  std::shared_ptr<const Snapshot> With(std::int64_t index, RowsOfBlock rows) const;

  // Returns row `index` of block.view. BlocksOf must have returned `block`. The components are as
  // the store keeps them, after rounding to the storage type.
  Row RowOf(const PositionedBlock& block, std::int64_t index) const;

  struct TagsOfRow {
    std::optional<std::uint64_t> id;
    std::vector<std::string> labels;
  };
  // Returns the tags of the row at `position`, which must be below row_count(). The row may be
  // deleted. It has no tags if a compaction has dropped it.
  TagsOfRow TagsOf(std::uint64_t position) const;
  // Returns the id of the row at `position`, which may be deleted. Returns nothing if `position`
  // has no row, or its row has no id or was dropped by a compaction.
  std::optional<std::uint64_t> IdAt(std::uint64_t position) const;
  // Returns the store's dictionary of labels. It can have labels of rows that were appended after
  // this snapshot. Null if no row up to this snapshot has ever had a label.
  const LabelDictionary* labels() const { return labels_.get(); }

  // Returns the state of the memories before the first row of block `index`. The block must have a
  // row, unless `index` is 0.
  MemoriesView MemoriesBefore(std::int64_t index) const {
    return {stored_blocks_.MemoriesBefore(index), *config_};
  }
  // Returns memory `index` (0: average; then config().memories) as it was after the first
  // `position` rows, deleted ones included. `position` must be at most row_count(). Reads at most
  // one block. ROWS_COMPACTED if `position` is within a compacted block, and neither its begin nor
  // its end. ROWS_NOT_RESIDENT if that block is not resident.
  absl::StatusOr<std::unique_ptr<RunningMemory>> MemoryAsOf(std::uint64_t position,
                                                            std::size_t index) const;

 private:
  friend class StoreEditor;

  std::shared_ptr<const StoreLease> lease_;
  std::shared_ptr<const StoreConfig> config_;
  std::uint64_t revision_ = 0;
  std::uint64_t byte_size_ = 0;
  std::uint64_t deleted_count_ = 0;
  std::shared_ptr<const LabelDictionary> labels_;
  StoredBlocks stored_blocks_;
  mutable std::once_flag all_blocks_once_;
  mutable std::unique_ptr<const AllBlocks> all_blocks_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_
