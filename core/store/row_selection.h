#ifndef SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_
#define SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_

#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "core/store/row_mask.h"
#include "core/store/snapshot.h"
#include "softlookup/row.h"

namespace softlookup {

// The live rows of a snapshot that pass a filter.
class RowSelection {
 public:
  // Selects the live rows of `snapshot` that pass `filter` and are in `part`. POSITION_OUT_OF_RANGE
  // if the filter's begin and end are not a range within the snapshot's positions. Errors put
  // `prefix` before the name of the field, such as "filter." before "end". The snapshot must
  // outlive the selection.
  static absl::StatusOr<RowSelection> Make(const Snapshot& snapshot, const RowFilter& filter,
                                           absl::string_view prefix, PositionRange part = {});

  // The blocks that overlap [begin(), end()). The row_mask of each block has its live rows whose
  // ids and labels pass. A null row_mask means that all rows of the block's view are live and pass.
  const Snapshot::Blocks& blocks() const { return all_ == nullptr ? blocks_ : all_->blocks; }
  // Returns SummaryOf(blocks()) if it is known, or else null.
  const BlocksSummary* summary() const { return all_ == nullptr ? nullptr : &all_->summary; }
  // Returns the positions that the filter leaves, those outside of the part included.
  const PositionRange& filtered() const { return filtered_; }
  // Rows at positions outside [begin(), end()) are not selected, even if a mask has them.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  // Returns whether row `row` of block.view is selected. `block` must be one of blocks().
  bool Contains(const PositionedBlock& block, std::int64_t row) const {
    const std::uint64_t position = block.PositionOf(row);
    return position >= begin_ && position < end_ && block.MayCount(row);
  }

 private:
  // Set if all live rows are selected. blocks_ is then empty.
  const Snapshot::AllBlocks* all_ = nullptr;
  Snapshot::Blocks blocks_;
  PositionRange filtered_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  // One per block, if the filter looks at ids or labels. blocks_ points to the masks, so they are
  // in a deque, which does not move them.
  std::deque<RowMask> masks_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_
