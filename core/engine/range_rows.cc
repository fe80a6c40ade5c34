#include "core/engine/range_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/status_macros.h"
#include "softlookup/store_ranges.h"

namespace softlookup {
namespace {

// Counts the rows of `range`, which ends before position `end`, or where the store does.
RangeInfo CountRange(const StoredBlocks& blocks, const StoreRange& range, std::uint64_t end) {
  const auto row_count = static_cast<std::uint64_t>(blocks.row_count());
  const auto block_rows = static_cast<std::uint64_t>(blocks.block_rows());
  end = std::min(end, row_count);
  RangeInfo info{.range = range};
  for (std::uint64_t begin = range.begin; begin < end; begin += block_rows) {
    const auto block = static_cast<std::int64_t>(begin / block_rows);
    const std::uint64_t rows = std::min(block_rows, end - begin);
    const auto count = [&](const RowMask* mask) {
      return mask == nullptr
                 ? rows
                 : static_cast<std::uint64_t>(mask->CountFirst(static_cast<std::int64_t>(rows)));
    };
    info.row_count += rows;
    if (blocks.IsResident(block)) info.resident_count += rows;
    info.live_row_count += count(blocks.LiveMaskOf(block));
    // A block that is not compacted has no mask, and all its rows.
    info.byte_size +=
        count(blocks.KeptMaskOf(block)) * static_cast<std::uint64_t>(blocks.shape().row_bytes());
  }
  return info;
}

}  // namespace

absl::StatusOr<std::vector<StoreRange>> PlanOf(const Snapshot& snapshot, const Store& store,
                                               Engine::RangesOf plan) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<StoreRange> ranges, plan(store.InfoOf(snapshot)));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreRanges("ranges", ranges, snapshot.config()));
  return ranges;
}

RangesInfo CountRows(const Snapshot& snapshot, const std::vector<StoreRange>& ranges) {
  RangesInfo info{.revision = snapshot.revision(), .row_count = snapshot.row_count()};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::uint64_t end = i + 1 < ranges.size() ? ranges[i + 1].begin : info.row_count;
    info.ranges.push_back(CountRange(snapshot.stored_blocks(), ranges[i], end));
  }
  return info;
}

}  // namespace softlookup
