#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "core/attention/options.h"
#include "core/attention/top_rows.h"
#include "core/kernels/logits.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/tile_scan.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// The rows of one block, and their positions in the store. A selection may have left rows out.
struct PositionedBlock {
  kernels::BlockView view;
  std::int64_t number = 0;  // In its store, from 0. Says which blocks are merged in one group.
  // The block covers the positions [first_position, first_position + position_count).
  std::uint64_t first_position = 0;
  std::int64_t position_count = 0;  // At least view.row_count.
  // Row r is at first_position + row_offsets[r], ascending. Null: at first_position + r.
  const std::uint16_t* row_offsets = nullptr;
  // Bit r % 64 of word r / 64: row r may count. Null: all rows may.
  const std::uint64_t* row_mask = nullptr;

  std::uint64_t end_position() const {
    return first_position + static_cast<std::uint64_t>(position_count);
  }
  std::int64_t OffsetOf(std::int64_t row) const {
    return row_offsets == nullptr ? row : row_offsets[row];
  }
  std::uint64_t PositionOf(std::int64_t row) const {
    return first_position + static_cast<std::uint64_t>(OffsetOf(row));
  }
  // The first row whose position is at least `position`; view.row_count if there is none.
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
};

// One query in one head: the head's part of the query's components.
struct HeadQuery {
  const float* components = nullptr;
  float magnitude = 0;      // Largest |component|.
  double norm = 0;          // Euclidean, of the head's part.
  std::uint64_t begin = 0;  // Rows at positions [begin, end) count.
  std::uint64_t end = 0;

  // Collect the rows with the largest logits, and those with the lowest positions. Null: nobody
  // asked for them.
  TopRows* top_rows = nullptr;
  TopRows* first_rows = nullptr;
};

// Parameters of a scan besides the query and the block.
struct ScanPlan {
  ResolvedOptions options;
  std::int64_t head = 0;
  kernels::DimRange key_dims;    // The head's part of a key.
  kernels::DimRange value_dims;  // The head's part of a value.
  std::uint64_t age_end = 0;     // A row's age is age_end - 1 - position.
  // If set, the rows that all queries together may still collect. Further rows are left out.
  std::atomic<std::int64_t>* collected_rows_left = nullptr;
  // False: only the best rows are wanted. The scan then writes no sums.
  bool sum_values = true;
  std::optional<kernels::TileUnit> tiles;  // As in AttentionTask.
};

// How a scan follows on the scan before it, on the same thread.
struct ScanOrder {
  // The scan before was of another block, so operands kept from it cannot be used again.
  bool is_first_of_block = true;
  // Rows to fetch into the cache for later scans: while keys are scored, and while values are added
  // up.
  kernels::PanelPart while_scoring;
  kernels::PanelPart while_summing;
};

// Scans one block for a tile: 1 to kTileQueries queries of one head. Overwrites states[q] with the
// state over this block alone, and sums[q * PaddedValueDim(value_dims.count) + i] with component i
// of its weighted sum of values. A query's bits do not depend on the other queries.
void ScanBlock(const ScanPlan& plan, const PositionedBlock& block, const ScanOrder& order,
               const HeadQuery* queries, int query_count, PartialState* states, double* sums);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
