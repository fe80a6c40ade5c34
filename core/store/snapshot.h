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
#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_tags.h"
#include "core/store/shared_list.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Bounds over some rows, as in kernels::BlockView.
struct RowBounds {
  float key_magnitude = 0;
  float value_magnitude = 0;
  std::vector<float> key_norms_max;  // One a head; none before the first row.

  void Add(const kernels::PanelRow& row, const StoreConfig& config);
  // Memory that they take, themselves included.
  std::int64_t bytes() const;
};

// The live rows of a sealed block that has few: what lookups read instead of the block.
struct PackedRows {
  std::shared_ptr<const PanelBuffer> panels;  // Null: no row is live.
  std::vector<std::uint16_t> offsets;         // Where in the block each row was, ascending.

  std::int64_t row_count() const { return static_cast<std::int64_t>(offsets.size()); }
  // Memory that they take, themselves included.
  std::int64_t bytes() const;
};

// Rows `live` of a block of `row_count`, whose panels are `panels`, by themselves.
std::shared_ptr<const PackedRows> PackLiveRows(const PanelBuffer& panels,
                                               const kernels::PanelShape& shape,
                                               std::int64_t row_count, const RowMask& live);

// A block that is full: immutable, shared by every snapshot since.
struct SealedBlock {
  // All rows, the deleted ones too: memories are a function of them.
  std::shared_ptr<const PanelBuffer> panels;
  std::shared_ptr<const PackedRows> packed;  // Null: most rows are live.
  std::shared_ptr<const RowBounds> bounds;
  // As of this block's first row. Null: no row was before it.
  std::shared_ptr<const MemorySet> memories_before;
  std::shared_ptr<const RowTags> tags;  // Null: no row has any.
  std::shared_ptr<const RowMask> live;  // Rows not deleted. Null: all.

  // Memory that all of this takes; the block itself lies in a SharedList.
  std::int64_t bytes() const;
};

// The block that still grows, as one snapshot sees it. Its full panels are shared with the writer,
// who only writes panels behind those; the panel that is still filling is a copy.
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

// How a store's rows lie.
kernels::PanelShape PanelShapeOf(const StoreConfig& config);

// A store's memories before its first row: `average`, then those of the configuration.
MemorySet MemorySetOf(const StoreConfig& config);

// What a store and all its snapshots hold in common: when the last of them is gone, so is the
// store's memory.
class StoreLease {
 public:
  ~StoreLease() {
    if (on_end_) on_end_();
  }

  // Has `on_end` run then, on whatever thread that is. Once, while the caller holds the store.
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
  // Memory that the store takes as long as nobody reads an older snapshot of it, as the allocator
  // counts it: rows, with the room that was made for more of them, in blocks and packed; their ids,
  // labels and masks; the memories at the start of every block; the store's dictionaries of ids,
  // labels and writers; its configuration; and what every store takes. What the log keeps in memory
  // of it does not count.
  std::uint64_t byte_size() const { return byte_size_; }

  using Blocks = absl::InlinedVector<PositionedBlock, 1>;
  // The blocks that hold positions [begin, end), end <= row_count(), with their live rows.
  Blocks BlocksOf(std::uint64_t begin, std::uint64_t end) const;

  // Memory `index` (0: average; then config().memories) as of the append index `position` <=
  // row_count(). Reads at most one block.
  std::unique_ptr<RunningMemory> MemoryAsOf(std::uint64_t position, std::size_t index) const;

  struct TagsOfRow {
    std::optional<std::uint64_t> id;
    std::vector<std::string> labels;
  };
  // Of the row at `position` < row_count(), deleted or not.
  TagsOfRow TagsOf(std::uint64_t position) const;
  // The id of the row at `position`, if there is such a row and it has one.
  std::optional<std::uint64_t> IdAt(std::uint64_t position) const;
  // The tags of the block that holds `position` < row_count(); null if none of its rows has any.
  const RowTags* TagsAt(std::uint64_t position) const;
  // The labels of the store's rows; null if no row has ever had one.
  const LabelDictionary* labels() const { return labels_.get(); }

  // The rows of a block, and all that block `index` ever had.
  std::int64_t block_rows() const { return block_rows_; }
  kernels::BlockView HistoryAt(std::int64_t index) const;
  // The memories as of the first row of block `index`, which has one.
  MemorySet MemoriesBefore(std::int64_t index) const;
  const RowBounds& BoundsOf(std::int64_t index) const;
  // The rows of block `index` that are not deleted. Null: all.
  const RowMask* LiveRowsOf(std::int64_t index) const;

  // Row `row` of `block`, which BlocksOf returned. Exact bits.
  Row RowOf(const PositionedBlock& block, std::int64_t row) const;

 private:
  friend class StoreWriter;

  // Block `index` with its live rows.
  PositionedBlock BlockAt(std::int64_t index) const;
  // Null: no row is before that block.
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
