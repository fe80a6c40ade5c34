#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "core/attention/options.h"
#include "core/attention/partial_state.h"
#include "core/attention/top_rows.h"
#include "core/kernels/logits.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/tile_scan.h"

namespace softlookup {

// The rows that may count of a stretch of positions. Row r of `view` is at the r-th of them, or at
// none if rows between were left out: see row_offsets.
struct PositionedBlock {
  kernels::BlockView view;
  std::int64_t number = 0;  // In its store: blocks are merged in groups of neighbours.
  std::uint64_t first_position = 0;
  std::int64_t position_count = 0;  // At least view.row_count.
  // Row r is at first_position + row_offsets[r], ascending. Null: at first_position + r.
  const std::uint16_t* row_offsets = nullptr;
  // Which rows may count, as in kernels::LogitParams. Null: all.
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
  // The first row at `position` or behind it; view.row_count if there is none.
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

// One query of one head.
struct HeadQuery {
  const float* components = nullptr;  // The head's part of the query.
  float magnitude = 0;                // Largest |component|.
  double norm = 0;                    // |query|, this head's part.
  std::uint64_t begin = 0;            // Positions that count: [begin, end).
  std::uint64_t end = 0;

  // Where the best rows go, if anybody asked: by logit, and the first ones by position.
  TopRows* top_rows = nullptr;
  TopRows* first_rows = nullptr;
};

// What a scan needs to know besides the query and the block.
struct ScanPlan {
  ResolvedOptions options;
  std::int64_t head = 0;
  kernels::DimRange key_dims;    // The head's part of a key.
  kernels::DimRange value_dims;  // The head's part of a value.
  std::uint64_t age_end = 0;     // A row's age is age_end - 1 - position.
  // Bounds the rows that all queries together collect, if set: what comes after is left out.
  std::atomic<std::int64_t>* collected_rows_left = nullptr;
  // False if only the best rows are wanted: the sums of values are then left alone.
  bool sum_values = true;
  std::optional<kernels::TileUnit> tiles;  // As in AttentionTask.
};

// A scan's place among the scans that a thread makes one after the other.
struct ScanOrder {
  // Nobody has just scanned the block: what is kept of the one before is no use.
  bool is_first_of_block = true;
  // What to fetch for scans to come: while keys are scored, and while values are added up.
  kernels::PanelPart while_scoring;
  kernels::PanelPart while_summing;
};

// Runs `query_count` <= kTileQueries queries of one head over one block: states[q] is the state
// over this block alone, and sums[q * PaddedValueDim(value_dims.count) + i] its weighted sum of
// values. Both are overwritten. A query's results do not depend on the others.
void ScanBlock(const ScanPlan& plan, const PositionedBlock& block, const ScanOrder& order,
               const HeadQuery* queries, int query_count, PartialState* states, double* sums);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
