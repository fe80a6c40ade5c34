#ifndef SOFTLOOKUP_CORE_ATTENTION_POSITIONED_BLOCK_H_
#define SOFTLOOKUP_CORE_ATTENTION_POSITIONED_BLOCK_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/kernels/key_sketch.h"
#include "core/kernels/panel.h"

namespace softlookup {

// The rows of one block, and their positions in the store. Deleted rows may be missing from `view`.
// row_mask excludes further rows that are deleted or that a filter leaves out.
struct PositionedBlock {
  kernels::BlockView view;
  std::int64_t number = 0;  // Index of the block in its store. Decides its merge group.
  // The block covers the positions [first_position, first_position + position_count).
  std::uint64_t first_position = 0;
  std::int64_t position_count = 0;  // At least view.row_count.
  // Row r is at position first_position + row_offsets[r]. The offsets ascend. Null: row r is at
  // first_position + r.
  const std::uint16_t* row_offsets = nullptr;
  // Row r may count if bit r % 64 of word r / 64 is set. Null: all rows may count.
  const std::uint64_t* row_mask = nullptr;
  // The sketch of the block's keys, whose row r is row r of the block. Null: there is none.
  const kernels::SketchView* sketch = nullptr;
  // Balls that hold the keys of this block and of the kernels::kBallGroupBlocks - 1 blocks before
  // it in the store. Null: there are none.
  const kernels::KeyBalls* group_balls = nullptr;

  std::uint64_t end_position() const {
    return first_position + static_cast<std::uint64_t>(position_count);
  }
  std::int64_t OffsetOf(std::int64_t row) const {
    return row_offsets == nullptr ? row : row_offsets[row];
  }
  std::uint64_t PositionOf(std::int64_t row) const {
    return first_position + static_cast<std::uint64_t>(OffsetOf(row));
  }
  // Returns the first row whose position is at least `position`, or view.row_count if there is
  // none.
  std::int64_t FirstRowFrom(std::uint64_t position) const {
    if (position <= first_position) return 0;
    const std::uint64_t offset = position - first_position;
    const std::int64_t count = view.row_count;
    if (offset >= static_cast<std::uint64_t>(position_count)) return count;
    if (row_offsets == nullptr) return std::min(static_cast<std::int64_t>(offset), count);
    return std::lower_bound(row_offsets, row_offsets + count, offset) - row_offsets;
  }
  bool MayCount(std::int64_t row) const {
    return row_mask == nullptr || (row_mask[row / 64] >> (row % 64) & 1) != 0;
  }
  // Returns the number of `rows` that may count.
  std::int64_t CountOf(kernels::RowRange rows) const {
    if (row_mask == nullptr) return rows.end - rows.begin;
    std::int64_t count = 0;
    for (std::int64_t begin = rows.begin; begin < rows.end;) {
      const std::int64_t end = std::min(rows.end, begin / 64 * 64 + 64);
      const std::uint64_t bits = row_mask[begin / 64] >> (begin % 64);
      count += std::popcount(bits << (64 - (end - begin)));
      begin = end;
    }
    return count;
  }
};

// Returns true if `a` and `b` are the same block with the same rows that may count. Compares
// addresses, so it can return false for two equal copies of a mask.
bool AreSameRows(const PositionedBlock& a, const PositionedBlock& b);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_POSITIONED_BLOCK_H_
