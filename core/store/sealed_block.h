#ifndef SOFTLOOKUP_CORE_STORE_SEALED_BLOCK_H_
#define SOFTLOOKUP_CORE_STORE_SEALED_BLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/positioned_block.h"
#include "core/kernels/key_ball.h"
#include "core/kernels/key_sketch.h"
#include "core/kernels/panel.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_bounds.h"
#include "core/store/row_mask.h"
#include "core/store/row_tags.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Returns whether a full block with `bounds` has a sketch while it is not packed. The keys must fit
// a sketch, and a first look must save time in a store of this `config`. The result depends only on
// the arguments, so that a store has the same sketches when it is loaded again.
bool HasSketch(const StoreConfig& config, const RowBounds& bounds);

// The sketch of a sealed block's keys.
class BlockSketch {
 public:
  // Writes a sketch of the rows in `block`, which must be full, to `panels`.
  BlockSketch(const PanelBuffer& block, const kernels::PanelShape& shape,
              std::shared_ptr<PanelBuffer> panels);
  BlockSketch(const BlockSketch&) = delete;
  BlockSketch& operator=(const BlockSketch&) = delete;

  const kernels::SketchView& view() const { return view_; }
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;

 private:
  const std::shared_ptr<const PanelBuffer> panels_;
  std::vector<float> centres_;  // Centres of the key balls (kernels::KeyBall). Empty: no balls.
  const kernels::SketchView view_;
};

// The balls that the keys of a group of neighbouring blocks have in common.
class GroupBalls {
 public:
  // `members` are the balls of the group's blocks.
  GroupBalls(absl::Span<const kernels::KeyBall> members, std::int64_t key_dim);
  GroupBalls(const GroupBalls&) = delete;
  GroupBalls& operator=(const GroupBalls&) = delete;

  const kernels::KeyBalls& balls() const { return balls_; }
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;

 private:
  std::vector<float> centres_;
  const kernels::KeyBalls balls_;
};

// A sealed block has its live rows packed if they are at most 1 / kPackedPart of all its rows.
inline constexpr std::int64_t kPackedPart = 4;

// A copy of the live rows of a sealed block that has few live rows. Lookups read it instead of the
// block.
struct PackedRows {
  std::shared_ptr<const PanelBuffer> panels;  // Null: no row is live, or they are not resident.
  std::vector<std::uint16_t> offsets;         // Each row's index in the block, ascending.

  std::int64_t row_count() const { return static_cast<std::int64_t>(offsets.size()); }
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;
};

// Copies the rows in `live` from `panels`, which hold a block of `row_count` rows. If `panels` is
// null, the packed rows are not resident.
std::shared_ptr<const PackedRows> PackLiveRows(const PanelBuffer* panels,
                                               const kernels::PanelShape& shape,
                                               std::int64_t row_count, const RowMask& live);
// Copies the rows in `live` from `packed`, if these are resident. A row of the block that is not in
// `packed` must not be in `live`.
std::shared_ptr<const PackedRows> PackLiveRows(const PackedRows& packed,
                                               const kernels::PanelShape& shape,
                                               const RowMask& live);

// The components of a block's rows, as the log has them.
struct RowsOfBlock {
  std::shared_ptr<const PanelBuffer> panels;  // All rows. Null if the block is compacted.
  std::shared_ptr<const PackedRows> packed;   // The kept rows of a compacted block.
};

// A full block. Its parts are immutable, and snapshots share them.
//
// A block is resident if its components are in RAM. Those of other blocks are in the log alone,
// because another server of the group answers for them (kept_ranges.h). Everything else is the same
// in both: masks, tags, bounds, memories, and which rows are packed.
struct SealedBlock {
  bool is_resident = true;
  // All rows. Deleted rows are included, because memories are computed from all rows. Null if the
  // block is compacted: it then has its packed rows alone. Null if it is not resident.
  std::shared_ptr<const PanelBuffer> panels;
  std::shared_ptr<const PackedRows> packed;  // Null if many rows are live.
  std::shared_ptr<const RowBounds> bounds;
  // Null if packed, if HasSketch() is false, or if the block is not resident.
  std::shared_ptr<const BlockSketch> sketch;
  // The balls of the group that this block is the last of. Null: it is not the last of one, or a
  // block of the group had no balls when this block was sealed.
  std::shared_ptr<const GroupBalls> group_balls;
  // The state of the memories before this block's first row. Null for block 0, and in an Attend,
  // which has no memories.
  std::shared_ptr<const MemorySet> memories_before;
  std::shared_ptr<const RowTags> tags;  // Null: no row has an id or labels.
  std::shared_ptr<const RowMask> live;  // Rows that are not deleted. Null: all rows.
  // Rows that were live when the block was last compacted: those that the log still has. Null if
  // the block is not compacted.
  std::shared_ptr<const RowMask> kept;
  // A view of the rows that lookups read. It points into what the members above point to. It is
  // kept here so that a lookup over many blocks need not follow their pointers. If the block is not
  // resident, the view has the rows' number and positions, and no panels.
  PositionedBlock live_rows;

  bool is_compacted() const { return kept != nullptr; }
  // Returns all rows, deleted ones included. The block must be resident and not compacted.
  kernels::BlockView AllRows(const kernels::PanelShape& shape) const;
  // Returns the bytes of everything that the members point to. SharedList::bytes() counts the
  // members themselves.
  std::int64_t bytes() const { return BytesNotIn({}); }
  // Returns those of bytes() that `later`, which was made from this block, does not hold.
  std::int64_t BytesNotIn(const SealedBlock& later) const;
};

// Returns how many rows Compact() drops of a block of `block_rows` rows. 0 if Compact() must not be
// called.
std::int64_t RowsToDrop(const SealedBlock& block, std::int64_t block_rows);
// Drops the deleted rows, and their tags, of a block whose live rows are packed. Lookups read the
// same rows as before. The memories as of a position within the block can no longer be computed.
// The block's rows must be committed (PanelBuffer::FreePagesAtEnd()).
void Compact(SealedBlock& block);
// Packs the live rows of a block if they are few, and drops its sketch then. A lookup then costs
// only as much as the live rows. Call this whenever rows of the block are deleted. Which blocks are
// packed then depends on which rows are live, not on the order of the deletions. That matters
// because the bits of an answer depend on which blocks are packed.
void PackIfFewAreLive(const kernels::PanelShape& shape, std::int64_t block_rows,
                      SealedBlock& block);
// Makes a block resident, which must not be. `rows` must fit it: be compacted if it is, and be
// those that it kept. Makes no sketch.
void SetRows(const kernels::PanelShape& shape, std::int64_t block_rows, RowsOfBlock rows,
             SealedBlock& block);
// Makes a block not resident. The block's rows must be committed (PanelBuffer::FreePagesAtEnd()).
void Evict(SealedBlock& block);

// Sets block.live_rows. `index` is the block's number in its store, whose blocks have `block_rows`
// rows. Call this whenever another member has changed.
void SetLiveRows(const kernels::PanelShape& shape, std::int64_t block_rows, std::int64_t index,
                 SealedBlock& block);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SEALED_BLOCK_H_
