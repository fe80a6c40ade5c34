#ifndef SOFTLOOKUP_CORE_STORE_STORED_BLOCKS_H_
#define SOFTLOOKUP_CORE_STORE_STORED_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/attention/positioned_block.h"
#include "core/kernels/panel.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_bounds.h"
#include "core/store/row_mask.h"
#include "core/store/row_tags.h"
#include "core/store/sealed_block.h"
#include "core/store/shared_list.h"

namespace softlookup {

// A tail as one snapshot sees it. The store's Tail shares `full_panels` and writes only behind the
// first `full_panel_count` panels. It copies `partial_panel` before it adds a row to that panel. So
// the view never changes.
//
// All pointers are null if row_count is 0. `full_panels` is null while no panel is full, and
// `partial_panel` if row_count is a multiple of kPanelRows. `memories_before`, `tags` and `live`
// can be null for the same reasons as in SealedBlock.
struct TailView {
  std::shared_ptr<const PanelBuffer> full_panels;
  std::int64_t full_panel_count = 0;
  std::shared_ptr<const PanelBuffer> partial_panel;
  std::int64_t row_count = 0;
  std::shared_ptr<const RowBounds> bounds;
  std::shared_ptr<const MemorySet> memories_before;
  std::shared_ptr<const RowTags> tags;
  std::shared_ptr<const RowMask> live;
};

// The blocks of a store as of one revision, by number: the sealed ones, then the tail if it has a
// row. An Attend arranges its rows in the same way. Immutable.
class StoredBlocks {
 public:
  StoredBlocks() = default;
  // A sealed block has `block_rows` rows, and the tail has fewer. `evicted_count` sealed blocks are
  // not resident.
  StoredBlocks(const kernels::PanelShape& shape, std::int64_t block_rows,
               SharedList<SealedBlock> sealed, TailView tail, std::int64_t evicted_count)
      : shape_(shape),
        block_rows_(block_rows),
        sealed_(std::move(sealed)),
        tail_(std::move(tail)),
        evicted_count_(evicted_count) {}

  const kernels::PanelShape& shape() const { return shape_; }
  // Rows in a full block.
  std::int64_t block_rows() const { return block_rows_; }
  // Rows of all blocks, deleted ones included.
  std::int64_t row_count() const { return sealed_.size() * block_rows_ + tail_.row_count; }

  using Blocks = absl::InlinedVector<PositionedBlock, 1>;
  // Returns the blocks that overlap positions [begin, end), each with all its live rows. `end` must
  // be at most row_count().
  Blocks BlocksOf(std::uint64_t begin, std::uint64_t end) const;
  // Returns the rows that lookups read of block `index`, which must have a row.
  PositionedBlock LiveRowsOf(std::int64_t index) const {
    return index < sealed_.size() ? sealed_[index].live_rows : LiveRowsOfTail();
  }
  // Full blocks that are not resident. Their rows must not be read.
  std::int64_t evicted_count() const { return evicted_count_; }
  // The last block is resident until it is full.
  bool IsResident(std::int64_t index) const {
    return index >= sealed_.size() || sealed_[index].is_resident;
  }
  // Returns whether all blocks that overlap positions [begin, end) are resident.
  bool AreResident(std::uint64_t begin, std::uint64_t end) const;
  // Returns blocks that are these, but for the rows of block `index`, which must not be resident.
  StoredBlocks With(std::int64_t index, RowsOfBlock rows) const;
  // Returns whether block `index` is compacted: its deleted rows are gone.
  bool IsCompacted(std::int64_t index) const {
    return index < sealed_.size() && sealed_[index].is_compacted();
  }
  // Returns how many deleted rows a compaction drops of block `index`. 0 for the last block: the
  // memories after the store's last row are computed from all its rows.
  std::int64_t RowsToDropOf(std::int64_t index) const;
  // Returns all rows of block `index`, deleted ones included. The block must have a row, and must
  // not be compacted.
  kernels::BlockView AllRowsOf(std::int64_t index) const;
  // Returns the bounds over the rows of block `index`, which must have a row.
  const RowBounds& BoundsOf(std::int64_t index) const {
    return index < sealed_.size() ? *sealed_[index].bounds : *tail_.bounds;
  }
  // Returns which rows of block `index` were live when it was last compacted, or null if it
  // is not compacted.
  const RowMask* KeptMaskOf(std::int64_t index) const {
    return index < sealed_.size() ? sealed_[index].kept.get() : nullptr;
  }
  // Returns which rows of block `index` are not deleted, or null if no row is deleted.
  const RowMask* LiveMaskOf(std::int64_t index) const {
    return index < sealed_.size() ? sealed_[index].live.get() : tail_.live.get();
  }
  // Returns the tags of the rows of block `index`, or null if none of them has tags.
  const RowTags* TagsOf(std::int64_t index) const {
    return index < sealed_.size() ? sealed_[index].tags.get() : tail_.tags.get();
  }
  // Returns the state of the memories before the first row of block `index`, for MemoriesView. Null
  // for block 0, for a tail without rows, and in an Attend.
  const MemorySet* MemoriesBefore(std::int64_t index) const {
    return index < sealed_.size() ? sealed_[index].memories_before.get()
                                  : tail_.memories_before.get();
  }
  // Returns the heap bytes that only these blocks hold, if writes have made `later` from them.
  // Takes time in proportion to the blocks that the writes have copied.
  std::int64_t BytesNotIn(const StoredBlocks& later) const;

 private:
  PositionedBlock LiveRowsOfTail() const;

  kernels::PanelShape shape_;
  std::int64_t block_rows_ = 0;
  SharedList<SealedBlock> sealed_;
  TailView tail_;
  std::int64_t evicted_count_ = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORED_BLOCKS_H_
