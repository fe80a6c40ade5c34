#ifndef SOFTLOOKUP_CORE_STORE_STORE_LOADER_H_
#define SOFTLOOKUP_CORE_STORE_STORE_LOADER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/store/kept_ranges.h"
#include "core/store/row_mask.h"
#include "core/store/store_editor.h"
#include "core/store/writer_table.h"

namespace softlookup {

// Rebuilds the editor of a store from the store's records. The rebuilt rows, memories and bounds
// have the same bits as the original ones.
//
// Call order: AddBlockStart, AddLiveRows, AddKeptRows and AddWriter in any order; MakeRoom;
// PutComponents and PutKeptComponents for all rows; AddRows and AddCompactedBlock in the order of
// positions; Finish. The functions return DATA_LOSS if the records do not make a whole store. Not
// thread-safe, except PutComponents and PutKeptComponents.
class StoreLoader {
 public:
  // Full blocks that `kept` does not have are not resident, except the last block.
  StoreLoader(StoreConfig config, std::uint64_t revision, std::uint64_t row_count,
              KeptRanges kept = {});

  // Adds the memories before the first row of block `index`, as MemorySet::Save returned them. Also
  // adds the bounds of block `index` - 1, as SaveBounds returned them. For block 0, `bounds_before`
  // is not used.
  absl::Status AddBlockStart(std::uint64_t index, absl::Span<const double> memories,
                             absl::Span<const float> bounds_before);
  void AddLiveRows(std::uint64_t index, const RowMask& live);
  // Says that block `index` is compacted, and that the log has its rows in `kept` alone. Call this
  // before MakeRoom().
  void AddKeptRows(std::uint64_t index, const RowMask& kept);
  // Returns whether AddKeptRows() was called for the block whose first row is at `position`.
  bool BeginsCompactedBlock(std::uint64_t position) const {
    return position % block_rows_ == 0 && kept_.contains(position / block_rows_);
  }
  void AddWriter(const std::string& writer, WriterState state) {
    writers_.SetCommitted(writer, state);
  }
  // Returns the bytes of the panels of all blocks that are resident. Call this after
  // AddBlockStart() and AddKeptRows() for all blocks.
  std::int64_t RowBytes() const;
  // Allocates the panels of all resident blocks that are not compacted. Call this after
  // AddBlockStart() and AddKeptRows() for all blocks.
  absl::Status MakeRoom();
  // Adds the components of `count` rows from `first_position` on, as EncodeComponents made them.
  // Several threads may call this at the same time for different rows.
  absl::Status PutComponents(std::uint64_t first_position, std::uint64_t count,
                             absl::string_view components);
  // Adds the components of the rows that a compacted block kept, back to back. `first_position` is
  // that of the block's first row. Several threads may call this at the same time for different
  // blocks.
  absl::Status PutKeptComponents(std::uint64_t first_position, absl::string_view components);
  // Adds the next `count` rows, whose components PutComponents has stored, with their ids and
  // labels. Completes the blocks that these rows fill, except the store's last block, which Finish
  // completes. Each of `ids` and `row_labels` is empty or has one element per row.
  absl::Status AddRows(std::uint64_t first_position, std::uint64_t count,
                       absl::Span<const std::optional<std::uint64_t>> ids,
                       absl::Span<const std::vector<std::string>> row_labels);
  // Adds the next block, which is compacted and whose components PutKeptComponents has stored.
  // `ids` and `row_labels` are either empty or have one element per kept row.
  absl::Status AddCompactedBlock(std::uint64_t first_position,
                                 absl::Span<const std::optional<std::uint64_t>> ids,
                                 absl::Span<const std::vector<std::string>> row_labels);
  // Returns the editor. Call this once, last.
  absl::StatusOr<std::unique_ptr<StoreEditor>> Finish();

 private:
  struct BlockStart {
    std::shared_ptr<MemorySet> memories;
    RowBounds bounds_before;
  };

  // Returns whether [first_position, first_position + count) is not empty and lies within the
  // store.
  bool AreRows(std::uint64_t first_position, std::uint64_t count) const {
    return count > 0 && first_position < row_count_ && count <= row_count_ - first_position;
  }
  // Returns whether block `index` is resident.
  bool IsResident(std::uint64_t index) const {
    return kept_ranges_.Has(index * block_rows_) || (index + 1) * block_rows_ >= row_count_;
  }
  void TagRow(std::uint64_t position, std::optional<std::uint64_t> id,
              absl::Span<const std::string> labels);
  // Returns the block in progress, which has number `index` and whose rows end at loaded_. Counts
  // its deleted rows, and adds the ids of its live rows to live_ids_.
  SealedBlock TakeBlock(std::uint64_t index, RowBounds bounds);
  // Returns whether the masks of block `index`, for which AddKeptRows() was called, can be those of
  // a compacted block: it kept few rows, and every live one.
  bool AreMasksOfCompacted(std::uint64_t index) const;
  // Completes the block that ends at loaded_, unless it is the store's last one.
  absl::Status EndBlock();
  // Adds the store's last block, number `index`, to sealed_ if it is full. Otherwise makes it
  // blocks.tail. Sets `memories` to the memories after the last row. No record has these memories,
  // nor the block's bounds, so both are computed.
  absl::Status AddLastBlock(std::uint64_t index, GrowingBlocks::Parts& blocks,
                            GrowingMemories& memories);

  StoreConfig config_;
  const kernels::PanelShape shape_;
  const std::uint64_t block_rows_;
  const std::uint64_t revision_;
  const std::uint64_t row_count_;
  const KeptRanges kept_ranges_;
  std::uint64_t loaded_ = 0;                  // Rows added so far.
  std::shared_ptr<const MemorySet> no_rows_;  // State of the memories before the first row.
  std::map<std::uint64_t, BlockStart> starts_;
  std::map<std::uint64_t, std::shared_ptr<const RowMask>> live_;
  std::map<std::uint64_t, std::shared_ptr<const RowMask>> kept_;  // Of compacted blocks.
  // By block. Null for a block that is compacted or not resident.
  std::vector<std::shared_ptr<PanelBuffer>> panels_;
  // By block. Null for a block that is not compacted, and until PutKeptComponents() is called.
  std::vector<std::shared_ptr<const PackedRows>> packed_;
  std::vector<SealedBlock> sealed_;  // Full blocks so far.
  std::shared_ptr<RowTags> tags_;    // Tags of the block in progress.
  std::uint64_t deleted_count_ = 0;
  std::shared_ptr<LabelDictionary> labels_;
  StoreEditor::LiveIds live_ids_;
  WriterTable writers_;
};

// Returns the bounds as numbers, for the `bounds_before` of AddBlockStart. Their order is
// key_magnitude, value_magnitude, key_norms_max.
std::vector<float> SaveBounds(const RowBounds& bounds);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_STORE_LOADER_H_
