#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/attention/options.h"
#include "core/attention/positioned_block.h"
#include "core/attention/top_rows.h"
#include "core/kernels/amx/tile_scan.h"
#include "core/kernels/float32_sums.h"
#include "core/kernels/logits.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

inline constexpr double kInfiniteLogit = std::numeric_limits<double>::infinity();

// One query in one head: its components, its range of positions, and its collectors.
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
  // May be false only if this thread's last call of ScanBlock was for the same block. The scan may
  // then reuse the operands that the last call packed for the matrix unit. True is always safe.
  bool is_first_of_block = true;
  // Parts of panels that the scan prefetches, for itself or for later scans: while_scoring while it
  // scores keys, while_summing while it adds up values.
  kernels::PanelPart while_scoring;
  kernels::PanelPart while_summing;
};

// Scans one block for a tile: 1 to kTileQueries queries of one head. Overwrites states[q] with the
// state over this block alone. If plan.sum_values is set, overwrites sums[q *
// PaddedValueDim(value_dims.count) + i] with component i of the query's weighted sum of values.
// Adds rows to the queries' collectors. The bits of a query's results do not depend on the other
// queries.
//
// Without fine_panels, errors of logits stay within LogitErrorMax (error_budget.h). With
// fine_panels, logits are formed in float64 in the panels whose bits are set in fine_panels[q]. Bit
// p is that of panel p of the block. In the other panels, logits come from the fastest float32
// sums, whatever their errors. All logits of a query are formed in float64 if more than half of the
// block's panels have their bits set, or if Float32SumsFor returns nothing.
void ScanBlock(const ScanPlan& plan, const PositionedBlock& block, const ScanOrder& order,
               const HeadQuery* queries, int query_count, PartialState* states, double* sums,
               const std::uint64_t* fine_panels = nullptr);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_SCAN_H_
