#ifndef SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_
#define SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/block_scan.h"
#include "core/attention/options.h"
#include "core/base/cost.h"
#include "core/base/matrix_view.h"
#include "core/kernels/tile_scan.h"

namespace softlookup {

// One more row to attend to, which stands for many: a running memory. Not owned.
struct MemoryPair {
  const double* key = nullptr;    // key_dim
  const double* value = nullptr;  // value_dim
  // Rows it stands for, at least 1: its softmax weight is multiplied by it, as its linear weight
  // is.
  double multiplicity = 1;
  // The last position it stands for; not one of the blocks' rows that take part.
  std::uint64_t position = 0;
};

// Attention of a batch of queries over the rows of some blocks.
struct AttentionTask {
  ResolvedOptions options;
  MatrixView queries;          // [T, key_dim], finite.
  std::int64_t key_dim = 0;    // Total over heads.
  std::int64_t value_dim = 0;  // Total over heads.
  std::int64_t num_heads = 1;
  absl::Span<const PositionedBlock> blocks;  // In position order, without gaps. Not owned.
  // Positions that take part: [begin, end), within the blocks.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  // Ages count from here: age_end - 1 - position.
  std::uint64_t age_end = 0;
  std::optional<MemoryPair> memory;
  // An answer that would take more bytes on the wire is refused.
  std::int64_t answer_bytes_max = 0;
  // What multiplies, where integer tiles can; null: vectors alone. The same for all tasks of a
  // process, whose answers would else have other bits.
  std::optional<kernels::TileUnit> tiles;

  std::int64_t query_count() const { return queries.rows; }
  // Rows that are looked at, about: at most those that take part.
  std::uint64_t row_count() const {
    std::uint64_t present = 0;
    for (const PositionedBlock& block : blocks) {
      present += static_cast<std::uint64_t>(block.view.row_count);
    }
    return std::min(present, end - begin);
  }
  double cost() const {
    return AttentionCost(
        {.query_count = query_count(),
         .num_heads = num_heads,
         .row_count = row_count(),
         .dims = key_dim + value_dim,
         .ranks_rows = options.top_k > 0 || options.weights != WeightsMode::kNone});
  }
};

struct AttentionAnswer {
  std::vector<float> values;          // [T, value_dim].
  std::vector<QueryStats> stats;      // T * num_heads, query-major.
  std::vector<QueryWeights> weights;  // Likewise, unless the weights mode is NONE.
};

// The rows that a pass went over, once for all that shared it.
struct ScannedRows {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // Of their keys and values, as they are kept.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_
