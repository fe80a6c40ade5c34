#ifndef SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_
#define SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_

#include <cstdint>
#include <deque>

#include "absl/status/statusor.h"
#include "core/store/snapshot.h"
#include "softlookup/row.h"

namespace softlookup {

// The rows of a snapshot that a filter leaves.
class RowSelection {
 public:
  // POSITION_OUT_OF_RANGE if the filter's positions are not within the snapshot's; `prefix` stands
  // before the names of its fields. The snapshot must outlive the selection.
  static absl::StatusOr<RowSelection> Make(const Snapshot& snapshot, const RowFilter& filter,
                                           absl::string_view prefix);

  // Blocks that cover [begin(), end()), each with the mask of its rows that count.
  const Snapshot::Blocks& blocks() const { return blocks_; }
  // Positions outside these do not count, whatever the masks say.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  // Whether row `row` of `block`, one of blocks(), is one of them.
  bool Contains(const PositionedBlock& block, std::int64_t row) const {
    const std::uint64_t position = block.PositionOf(row);
    return position >= begin_ && position < end_ && block.MayCount(row);
  }

 private:
  Snapshot::Blocks blocks_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::deque<RowMask> masks_;  // Those that no block has; they stay where they are.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_SELECTION_H_
