#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/attention/options.h"
#include "core/attention/top_rows.h"
#include "core/kernels/amx/tile_scan.h"
#include "core/kernels/float32_sums.h"
#include "core/kernels/key_sketch.h"
#include "core/kernels/logits.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

inline constexpr double kInfiniteLogit = std::numeric_limits<double>::infinity();

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

// One query in one head: the head's part of the query's components.
struct HeadQuery {
  const float* components = nullptr;
  float magnitude = 0;                             // Largest |component|.
  double norm = 0;                                 // Euclidean norm of the components.
  kernels::Float32ErrorNorms float32_errors = {};  // By index in kernels::kFloat32Sums.
  std::uint64_t begin = 0;                         // Rows at positions [begin, end) may count.
  std::uint64_t end = 0;

  // Collectors of the rows with the largest logits (top_rows) and of the rows with the lowest
  // positions (first_rows). Not owned. Null: these rows are not wanted.
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
  // The number of rows that all queries of the task together may still collect. Once it is 0 or
  // less, further rows are left out: the answer is then too large, and is refused. Null: no limit.
  std::atomic<std::int64_t>* collected_rows_left = nullptr;
  // False if only the best rows are wanted. The scan then writes no sums.
  bool sum_values = true;
  std::optional<kernels::TileUnit> tiles;  // The matrix unit, as in AttentionTask.
};

// What a scan has to know about the scans before and after it on the same thread.
struct ScanOrder {
  // False only if this thread's last call of ScanBlock was for the same block. The scan may then
  // reuse the operands that the last call packed for the matrix unit. True is always safe.
  bool is_first_of_block = true;
  // Parts of panels that the scan prefetches, for itself or for later scans: while_scoring while it
  // scores keys, while_summing while it adds up values.
  kernels::PanelPart while_scoring;
  kernels::PanelPart while_summing;
};

// Scans one block for a tile: 1 to kTileQueries queries of one head. Overwrites states[q] with the
// state over this block alone. If plan.sum_values is set, overwrites sums[q *
// PaddedValueDim(value_dims.count) + i] with component i of the query's weighted sum of values. The
// bits of a query's results do not depend on the other queries.
//
// Without fine_panels, errors of logits stay within LogitErrorMax (error_budget.h). With
// fine_panels, logits are formed in float64 in the panels whose bits are set in fine_panels[q]. In
// the other panels, logits come from the fastest float32 sums, whatever their errors. All logits
// are formed in float64 if more than half of the bits are set, or if Float32SumsFor returns
// nothing.
void ScanBlock(const ScanPlan& plan, const PositionedBlock& block, const ScanOrder& order,
               const HeadQuery* queries, int query_count, PartialState* states, double* sums,
               const std::uint64_t* fine_panels = nullptr);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
