#ifndef SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_
#define SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/blocks_summary.h"
#include "core/attention/options.h"
#include "core/attention/positioned_block.h"
#include "core/base/cost.h"
#include "core/base/matrix_view.h"
#include "core/kernels/amx/tile_scan.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// A running memory, which a task attends to as one more row. Beside other rows, its multiplicity is
// the number of rows that the memory stands for. Alone, it has the multiplicity 1. `key` and
// `value` are not owned.
struct MemoryPair {
  const double* key = nullptr;    // [key_dim]
  const double* value = nullptr;  // [value_dim]
  double multiplicity = 1;        // At least 1. Multiplies the memory's weight.
  // Position of the last row that the memory stands for. Must be outside [begin, end) of the task,
  // because an answer tells the memory from a row by this position.
  std::uint64_t position = 0;
};

// The rows that a task attends to which is cut into parts by ranges of positions.
struct WholeTask {
  std::uint64_t begin = 0;  // The positions [begin, end).
  std::uint64_t end = 0;
  std::optional<MemoryRow> memory;
};

// Attention of T queries over the rows of some blocks.
struct AttentionTask {
  ResolvedOptions options;
  MatrixView queries;          // [T, key_dim], finite.
  std::int64_t key_dim = 0;    // Total over heads.
  std::int64_t value_dim = 0;  // Total over heads.
  std::int64_t num_heads = 1;
  absl::Span<const PositionedBlock> blocks;  // In position order, without gaps. Not owned.
  // SummaryOf(blocks), if it is known already. Not owned.
  const BlocksSummary* summary = nullptr;
  // The task attends to the rows at positions [begin, end), all of them within the blocks.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  // The age of a row is age_end - 1 - position.
  std::uint64_t age_end = 0;
  std::optional<MemoryPair> memory;
  // An answer that is sure to take more bytes than this on the wire is refused.
  std::int64_t answer_bytes_max = 0;
  // The matrix unit that scans the blocks that fit its integer tiles. Unset: vector registers scan
  // all blocks. All tasks of a process must have the same value. Otherwise equal tasks could get
  // answers with different bits.
  std::optional<kernels::TileUnit> tiles;
  // If set, the task is a part of a larger one: [begin, end) is the part's, and so is `memory`. The
  // answer is then partial. All parts of the larger task together must have its rows and memory
  // once.
  std::optional<WholeTask> whole;

  std::int64_t query_count() const { return queries.rows; }
  // Returns an upper bound on the number of rows that a query attends to. It can be too high if
  // rows are deleted or filtered out, or if the task is causal.
  std::uint64_t row_count() const {
    std::uint64_t present = 0;
    if (summary != nullptr) {
      present = static_cast<std::uint64_t>(summary->row_count);
    } else {
      for (const PositionedBlock& block : blocks) {
        present += static_cast<std::uint64_t>(block.view.row_count);
      }
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
  std::vector<QueryStats> stats;      // [T, num_heads].
  std::vector<QueryWeights> weights;  // [T, num_heads]. Empty if the weights mode is NONE.
  // [T, num_heads] if the task is a part of a larger one. The other members are then empty.
  std::vector<PartialAnswer> partials;
};

// What a pass has scanned, skipped and looked at. A round is a set of head queries that the pass
// takes through all blocks together (shared_pass.h).
struct ScannedRows {
  // Rows scanned, summed over all rounds. A round that scans all rows for any of its head queries
  // adds each row once, however many tasks it has. Each tile of head queries with a second look
  // also adds the rows that are scanned for it: those of its candidate panels, or of whole blocks
  // (second_look.h).
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // Bytes of these rows in the store's storage type.
  // Rows of the blocks that first looks chose to read and that have a sketch, counted once for each
  // round. A round adds none if all its looks ended after their sample (first_look.h).
  std::uint64_t sketched_rows = 0;
  // Blocks of the pass that all first looks of a round chose to skip, counted once for each round
  // in which a look went on past its sample. A skipped block may still be scanned for head queries
  // without a look.
  std::uint64_t skipped_blocks = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_ATTENTION_TASK_H_
