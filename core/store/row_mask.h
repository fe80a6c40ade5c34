#ifndef SOFTLOOKUP_CORE_STORE_ROW_MASK_H_
#define SOFTLOOKUP_CORE_STORE_ROW_MASK_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "core/kernels/panel.h"

namespace softlookup {

// One bit per row of a block, in the layout that the kernels read: row r, counted from the block's
// first, is bit r % 64 of word r / 64.
class RowMask {
 public:
  static RowMask All() {
    RowMask mask;
    mask.words_.fill(~std::uint64_t{0});
    return mask;
  }

  static RowMask Of(const std::array<std::uint64_t, kernels::kBlockRowsMax / 64>& words) {
    RowMask mask;
    mask.words_ = words;
    return mask;
  }

  friend bool operator==(const RowMask&, const RowMask&) = default;
  bool operator[](std::int64_t row) const { return words_[row / 64] >> (row % 64) & 1; }
  void Set(std::int64_t row) { words_[row / 64] |= Bit(row); }
  void Clear(std::int64_t row) { words_[row / 64] &= ~Bit(row); }
  // Counts the set bits of rows [0, row_count).
  std::int64_t CountFirst(std::int64_t row_count) const;
  const std::uint64_t* words() const { return words_.data(); }

 private:
  static std::uint64_t Bit(std::int64_t row) { return std::uint64_t{1} << (row % 64); }
  std::array<std::uint64_t, kernels::kBlockRowsMax / 64> words_ = {};
};

// Returns a copy of `live`, the mask of a block, in which the rows at `positions` are cleared. All
// `positions` must be in the block, whose first row is at `first_position`. A null `live` stands
// for all rows.
std::shared_ptr<const RowMask> WithoutRows(const RowMask* live, std::uint64_t first_position,
                                           absl::Span<const std::uint64_t> positions);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_MASK_H_
