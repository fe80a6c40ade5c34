#ifndef SOFTLOOKUP_CORE_STORE_TAIL_H_
#define SOFTLOOKUP_CORE_STORE_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "core/memory/running_memory.h"
#include "core/store/block_shape.h"
#include "core/store/panel_allocator.h"
#include "core/store/panel_buffer.h"
#include "core/store/row_bounds.h"
#include "core/store/row_mask.h"
#include "core/store/row_tags.h"
#include "core/store/sealed_block.h"
#include "core/store/shared_flag.h"
#include "core/store/stored_blocks.h"
#include "softlookup/store_config.h"

namespace softlookup {

// A row to append. The caller must have checked it.
struct NewRow {
  const float* key = nullptr;
  const float* value = nullptr;
  // The row as another replica stores it: the bytes that PackRow() returns. If this is set, `key`
  // and `value` are not used.
  const std::byte* stored = nullptr;
  std::optional<std::uint64_t> id;
  absl::Span<const std::uint32_t> labels;  // Their numbers in the store's LabelDictionary.
};

// What a tail that was read from the log is made of.
struct TailParts {
  std::shared_ptr<PanelBuffer> panels;  // The panels of all rows. Null without a row.
  std::int64_t row_count = 0;
  RowBounds bounds;
  // These three can be null for the same reasons as in SealedBlock.
  std::shared_ptr<const MemorySet> memories_before;
  std::shared_ptr<RowTags> tags;
  std::shared_ptr<const RowMask> live;
};

// Takes the rows behind a store's last sealed block, until they fill a block. Not thread-safe, but
// its views are.
//
// A copy is a savepoint. It costs a few pointers, and no rows. The first row that is appended
// afterwards goes into a copy of the panel that is filling. To assign a copy back is a rollback.
// Views that show a later row than the copy has must not be read afterwards.
class Tail {
 public:
  // Makes a tail without rows.
  explicit Tail(const kernels::PanelShape& shape) : shape_(shape), block_rows_(BlockRows(shape)) {}
  // parts.row_count must be below block_rows().
  Tail(const kernels::PanelShape& shape, TailParts parts);

  const kernels::PanelShape& shape() const { return shape_; }
  // Rows in a full block.
  std::int64_t block_rows() const { return block_rows_; }
  std::int64_t row_count() const { return row_count_; }
  bool is_full() const { return row_count_ == block_rows_; }

  // Returns whether MakeRoom() must be called before the next Append().
  bool NeedsRoom() const;
  // Makes room for at least one more full panel, and copies the full panels there. Views keep the
  // old room. `blocks_before` is the number of sealed blocks.
  void MakeRoom(PanelAllocator& allocator, std::int64_t blocks_before);
  // Appends a row to a tail that is not full. Returns the row as it is stored, valid until the next
  // Read() of `reader` and while row.key and row.value exist. `reader` must read panels of shape().
  kernels::PanelRow Append(const NewRow& row, const StoreConfig& config,
                           kernels::PanelRowReader& reader);
  // Sets the state of the memories before the tail's first row.
  void SetMemoriesBefore(std::shared_ptr<const MemorySet> memories) {
    memories_before_ = std::move(memories);
  }
  // Deletes the rows at `positions`, which must be in the tail. `first_position` is the position of
  // the tail's first row.
  void Delete(std::uint64_t first_position, absl::Span<const std::uint64_t> positions) {
    live_ = WithoutRows(live_.get(), first_position, positions);
  }

  // Returns the rows of a full tail as a block. Its packed rows, sketch and live_rows are unset.
  // The tail has no rows afterwards.
  SealedBlock Seal();
  // Returns the rows so far. The view shares the panel that is filling, and the tags, so the next
  // change of either makes a copy.
  TailView View();
  // Returns the bytes that the tail has allocated.
  std::int64_t bytes() const;

 private:
  // Frees the unused room of the tags, and marks them as shared. Further tags go into a copy.
  void ShareTags();

  kernels::PanelShape shape_;
  std::int64_t block_rows_;
  std::int64_t row_count_ = 0;
  // The full panels, with room for more. Null while no panel is full.
  std::shared_ptr<PanelBuffer> full_panels_;
  // The panel that is filling. When it is full, it is copied behind the full panels. Null until a
  // row is put into it, so that an empty store is small.
  std::shared_ptr<PanelBuffer> partial_panel_;
  RowBounds bounds_;
  std::shared_ptr<RowTags> tags_;        // Null while no row has tags.
  std::shared_ptr<const RowMask> live_;  // Null while no row is deleted.
  // Null for block 0, and until SetMemoriesBefore() is called for the block.
  std::shared_ptr<const MemorySet> memories_before_;
  // Whether a view or a copy of this tail may share the partial panel, or the tags.
  SharedFlag partial_panel_is_shared_;
  SharedFlag tags_are_shared_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_TAIL_H_
