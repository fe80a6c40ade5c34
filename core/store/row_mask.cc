#include "core/store/row_mask.h"

#include <algorithm>
#include <bit>

namespace softlookup {

std::int64_t RowMask::CountFirst(std::int64_t row_count) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < row_count; row += 64) {
    const std::int64_t bits = std::min<std::int64_t>(64, row_count - row);
    const std::uint64_t kept = bits == 64 ? ~std::uint64_t{0} : Bit(bits) - 1;
    count += std::popcount(words_[row / 64] & kept);
  }
  return count;
}

std::shared_ptr<const RowMask> WithoutRows(const RowMask* live, std::uint64_t first_position,
                                           absl::Span<const std::uint64_t> positions) {
  RowMask mask = live == nullptr ? RowMask::All() : *live;
  for (const std::uint64_t position : positions) {
    mask.Clear(static_cast<std::int64_t>(position - first_position));
  }
  return std::make_shared<const RowMask>(mask);
}

}  // namespace softlookup
