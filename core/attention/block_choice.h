#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_CHOICE_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_CHOICE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/attention/ball_bounds.h"
#include "core/attention/block_scan.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/look_goal.h"
#include "core/attention/second_look.h"

namespace softlookup {

// Which blocks a first look reads for one head query. All other blocks are skipped: the balls that
// hold their keys show that their rows have no effect on the answer, or one within the error
// budget.
struct BlockChoice {
  // Indices of the blocks to read, ascending. Unset: all are read, because too few can be skipped.
  std::optional<std::vector<std::int32_t>> read;
  // The logarithm of an upper bound on the sum of exp(logit) over the rows of skipped blocks.
  double ln_left_out = -std::numeric_limits<double>::infinity();
  // Set if all rows are weighed: the largest logit, and the largest log-sum-exp of one panel, over
  // the panels that were scored for the choice.
  PanelLogits best;
  // The largest bound on the logits of a panel, over the blocks that were read for the choice.
  double largest_bound = 0;
};

// Sets highest[b] to an upper bound on the logits of all rows of blocks[b] that the query attends
// to. The bound is -inf if there are no such rows, and inf if the block has no balls. A block that
// is null has no rows.
void BoundBlocks(const ScanPlan& plan, const HeadQuery& query,
                 absl::Span<const PositionedBlock* const> blocks, double* highest);

// Sets highest[b] for the blocks b of each group that has balls, groups[i] being those of the
// blocks from i * kBallGroupBlocks on. All of them get the same bound, which holds for the logits
// of all rows of the group. A group whose balls are null is left out.
void BoundGroups(const ScanPlan& plan, const HeadQuery& query,
                 absl::Span<const kernels::KeyBalls* const> groups, double* highest);

// Returns false only if ChooseBlocks would skip none of the blocks, whatever BoundBlocks finds.
// `balls` must cover the balls of all blocks, and the blocks must have row_count rows together.
bool MaySkipBlocks(const ScanPlan& plan, const HeadQuery& query, const BallsRange& balls,
                   const LookGoal& goal, std::int64_t row_count);

// Chooses the blocks to read, from the bounds `highest` that BoundBlocks or BoundGroups has set. In
// `highest` itself, refine(cut) must replace the bounds of BoundGroups that are `cut` or more by
// those of BoundBlocks, and return whether there was one. row_count is the number of rows of all
// blocks of the task. Ignores goal.first_rows: the caller must give blocks that hold these rows an
// infinite bound, which refine must keep. panel_bounds(block) must return upper bounds on the
// logits of a block's panels. They must stay valid until the next call of panel_bounds, which is
// called for at most a few blocks. The choice depends only on the blocks of the query's own task,
// not on those of other tasks in the pass.
BlockChoice ChooseBlocks(
    const ScanPlan& plan, const HeadQuery& query, const LogitBounds& bounds,
    absl::Span<const PositionedBlock* const> blocks, absl::Span<const double> highest,
    std::int64_t row_count, const LookGoal& goal, absl::FunctionRef<bool(double cut)> refine,
    absl::FunctionRef<absl::Span<const float>(const PositionedBlock& block)> panel_bounds);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_CHOICE_H_
