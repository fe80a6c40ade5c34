#ifndef SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_

#include <cstdint>
#include <limits>

#include "core/attention/block_scan.h"
#include "core/attention/block_set.h"

namespace softlookup {

// What the first look at the rows of a store (first_look.h) leaves to the second, for one head
// query.
struct Candidates {
  // Upper bounds for each panel, as in panel_choice.h: [place of a block][panel]. A bound is on the
  // panel's mass if LookGoal::weighs_all, else on the logits of its rows. A place is an index among
  // the blocks that have bounds. Not owned.
  const float* bounds = nullptr;
  std::int64_t block_stride = 0;  // Number of bounds at each place.
  // For each block of the pass, its place, or -1 if the first look did not read the block. Not
  // owned. Null: the look read all blocks, and a block's place is its index in the pass.
  const std::int32_t* places = nullptr;
  // Panels with smaller bounds can be left out.
  float cut = 0;
  // The blocks of the pass that have a candidate among their panels.
  BlockSet kept_blocks;
  // Panels with smaller bounds weigh so little that the fastest arithmetic may score them. That
  // includes panels below `cut`, if their block is scanned whole. The default: float64 scores all
  // panels.
  float fine_cut = std::numeric_limits<float>::lowest();
  // The values of rows with smaller logits need not be added up.
  double row_cut = -std::numeric_limits<double>::infinity();
  // The logarithm of an upper bound on the sum of exp(logit) over the rows of skipped blocks and of
  // panels left out. -inf: there are none, or the answer does not depend on their weights.
  double ln_left_out = -std::numeric_limits<double>::infinity();

  // Returns the bounds of a block's panels. The block must have a place.
  const float* bounds_of(std::int64_t block) const {
    return bounds + (places == nullptr ? block : places[block]) * block_stride;
  }
};

// Does what ScanBlock does for a tile of queries, but scans only their candidate panels of the
// block. Scans the whole block for a query with many candidates in it, if values are added up and
// no rows are ranked. `block_index` is the index of the block in the pass. A state counts only rows
// of the panels that are scanned. If no row counts, the query's sums may stay unset. Returns the
// number of rows that are scanned for at least one query. Each scanned panel counts as 16 rows,
// unless the whole block is scanned.
std::int64_t ScanCandidates(const ScanPlan& plan, const PositionedBlock& block,
                            std::int64_t block_index, const HeadQuery* queries,
                            const Candidates* const* candidates, int query_count,
                            PartialState* states, double* sums);

// The largest logit and the log-sum-exp over the rows of one panel, formed in float64. Both are
// -inf if no row counts.
struct PanelLogits {
  double max = -kInfiniteLogit;
  double log_sum_exp = -kInfiniteLogit;
};
PanelLogits LogitsOfPanel(const ScanPlan& plan, const PositionedBlock& block,
                          const HeadQuery& query, std::int64_t panel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_
