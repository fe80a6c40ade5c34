#ifndef SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_
#define SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "core/attention/block_scan.h"
#include "core/kernels/key_sketch.h"
#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_tags.h"
#include "core/store/shared_list.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Upper bounds over some rows, for kernels::BlockView.
struct RowBounds {
  float key_magnitude = 0;    // Largest |component| of the keys.
  float value_magnitude = 0;  // Largest |component| of the values.
  // Largest norm of the keys in each head, rounded to the nearest float32. Empty before the first
  // row.
  std::vector<float> key_norms_max;

  void Add(const kernels::PanelRow& row, const StoreConfig& config);
  // Bytes taken, the object included.
  std::int64_t bytes() const;
};

// Returns whether a full block with `bounds` has a sketch, unless the block is packed. The keys
// must fit a sketch, and a first look must save time in a store of this `config`. The result
// depends only on the arguments, so that a store has the same sketches when it is loaded again.
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
  // Bytes taken, the object included.
  std::int64_t bytes() const;

 private:
  const std::shared_ptr<const PanelBuffer> panels_;
  std::vector<float> centres_;  // Of the balls around the keys (kernels::KeyBall). Empty: no balls.
  const kernels::SketchView view_;
};

// A copy of the live rows of a sealed block that has few live rows. Lookups read it instead of the
// block.
struct PackedRows {
  std::shared_ptr<const PanelBuffer> panels;  // Null: no row is live.
  std::vector<std::uint16_t> offsets;         // Each row's index in the block, ascending.

  std::int64_t row_count() const { return static_cast<std::int64_t>(offsets.size()); }
  // Bytes taken, the object included.
  std::int64_t bytes() const;
};

// Copies the rows in `live` from `panels`, which hold a block of `row_count` rows.
std::shared_ptr<const PackedRows> PackLiveRows(const PanelBuffer& panels,
                                               const kernels::PanelShape& shape,
                                               std::int64_t row_count, const RowMask& live);

// A full block. Its parts are immutable, and snapshots share them.
struct SealedBlock {
  // All rows. Deleted rows are included, because memories are computed from all rows.
  std::shared_ptr<const PanelBuffer> panels;
  std::shared_ptr<const PackedRows> packed;  // Null unless few rows are live.
  std::shared_ptr<const RowBounds> bounds;
  std::shared_ptr<const BlockSketch> sketch;  // Null if packed, or if HasSketch() is false.
  // Memories before this block's first row. Null for block 0, or if the editor keeps no memories.
  std::shared_ptr<const MemorySet> memories_before;
  std::shared_ptr<const RowTags> tags;  // Null: no row has an id or labels.
  std::shared_ptr<const RowMask> live;  // Rows that are not deleted. Null: all rows.
  // The rows that lookups read. They point into what the members above point to. They are kept here
  // so that a lookup over many blocks need not follow those pointers.
  PositionedBlock live_rows;

  // Bytes of everything that the members point to. SharedList::bytes() counts the members
  // themselves.
  std::int64_t bytes() const;
};

// The block that still grows, as one snapshot sees it. The editor shares `full_panels` and writes
// only behind the first `full_panel_count` panels. The editor copies `partial_panel` before it adds
// a row to that panel. So the view never changes.
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

// Sets block.live_rows. `index` is the block's number in its store. Call this whenever another
// member has changed.
void SetLiveRows(const kernels::PanelShape& shape, std::int64_t index, SealedBlock& block);

// Returns the layout of a store's panels.
kernels::PanelShape PanelShapeOf(const StoreConfig& config);

// Returns a store's memories before its first row: `average`, then those of the configuration.
MemorySet MemorySetOf(const StoreConfig& config);

// Shared by a store's editor and all its snapshots. When the last of them is destroyed, so is the
// lease, and the store's bytes are free.
class StoreLease {
 public:
  ~StoreLease() {
    if (on_end_) on_end_();
  }

  // Makes the destructor run `on_end`, on the thread that drops the last reference to the lease.
  // Call this once, while the caller holds the editor or a snapshot.
  void OnEnd(absl::AnyInvocable<void()> on_end) { on_end_ = std::move(on_end); }

 private:
  absl::AnyInvocable<void()> on_end_;
};

// A store as of one revision: immutable, cheap to make, safe to read on any thread for as long as
// it is held.
class Snapshot {
 public:
  const StoreConfig& config() const { return *config_; }
  std::uint64_t revision() const { return revision_; }
  std::uint64_t row_count() const {
    return static_cast<std::uint64_t>(sealed_.size() * block_rows_ + tail_.row_count);
  }
  std::uint64_t live_row_count() const { return row_count() - deleted_count_; }
  // Bytes of the store, as the allocator counts them, if no older snapshot is held:
  // - rows, in blocks and packed, with the room reserved for more; their ids, labels and masks;
  // - the memories before every block and after the last row;
  // - the dictionaries of ids, labels and writers; the configuration; the fixed part of a store.
  // The log's buffers do not count.
  std::uint64_t byte_size() const { return byte_size_; }

  using Blocks = absl::InlinedVector<PositionedBlock, 1>;
  // Returns the blocks that hold positions [begin, end), each with its live rows. `end` must be at
  // most row_count().
  Blocks BlocksOf(std::uint64_t begin, std::uint64_t end) const;

  // Returns memory `index` (0: average; then config().memories) as of the append index `position`,
  // which must be at most row_count(). Reads at most one block.
  std::unique_ptr<RunningMemory> MemoryAsOf(std::uint64_t position, std::size_t index) const;

  struct TagsOfRow {
    std::optional<std::uint64_t> id;
    std::vector<std::string> labels;
  };
  // Returns the tags of the row at `position`, deleted or not. `position` must be below
  // row_count().
  TagsOfRow TagsOf(std::uint64_t position) const;
  // Returns the id of the row at `position`, if there is such a row and it has an id.
  std::optional<std::uint64_t> IdAt(std::uint64_t position) const;
  // Returns the tags of the block that holds `position`, or null if none of its rows has tags.
  // `position` must be below row_count().
  const RowTags* TagsAt(std::uint64_t position) const;
  // The labels of the store's rows by number, possibly with labels of rows that were appended after
  // this snapshot. Null if no row up to this snapshot has ever had a label.
  const LabelDictionary* labels() const { return labels_.get(); }

  // Rows in a full block.
  std::int64_t block_rows() const { return block_rows_; }
  // Returns all rows of block `index`, deleted ones included.
  kernels::BlockView BlockWithDeletedRows(std::int64_t index) const;
  // Returns the memories before the first row of block `index`, which must have a row.
  MemorySet MemoriesBefore(std::int64_t index) const;
  // Returns the bounds over the rows of block `index`, which must have a row.
  const RowBounds& BoundsOf(std::int64_t index) const;
  // Returns the rows of block `index` that are not deleted, or null if no row is deleted.
  const RowMask* LiveRowsOf(std::int64_t index) const;

  // Returns row `index` of `block`, which BlocksOf must have returned. The components are as the
  // store keeps them, after rounding to the storage type.
  Row RowOf(const PositionedBlock& block, std::int64_t index) const;

 private:
  friend class StoreEditor;

  // Returns the tail as a block, with its live rows.
  PositionedBlock LiveRowsOfTail() const;
  // Returns the kept state of the memories before the first row of block `index`. Null for block 0,
  // for a tail without rows, or if the editor keeps no memories.
  const MemorySet* KeptMemoriesBefore(std::int64_t index) const;

  std::shared_ptr<const StoreLease> lease_;
  std::shared_ptr<const StoreConfig> config_;
  kernels::PanelShape shape_;
  std::int64_t block_rows_ = 0;
  std::uint64_t revision_ = 0;
  std::uint64_t byte_size_ = 0;
  std::uint64_t deleted_count_ = 0;
  std::shared_ptr<const LabelDictionary> labels_;
  SharedList<SealedBlock> sealed_;
  TailView tail_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SNAPSHOT_H_
