#ifndef SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_
#define SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/block_scan.h"

namespace softlookup {

// What the first look at the rows of a store (first_look.h) leaves to the second, for one head
// query.
struct Candidates {
  // Upper bounds for each panel, as in panel_choice.h: [place of a block][panel]. They bound the
  // panel's mass if all rows are weighed (LookGoal), else the logits of its rows. A place is an
  // index among the blocks that have bounds. Not owned.
  const float* bounds = nullptr;
  std::int64_t block_stride = 0;  // Bounds of one place.
  // By block of the pass: its place, or -1 if it was not read. Not owned. Null: all blocks were
  // read, and the place of a block is its index in the pass.
  const std::int32_t* places = nullptr;
  // Panels with smaller bounds can be left out.
  float cut = 0;
  // By block of the pass: a bit that says whether any of its panels is a candidate.
  std::vector<std::uint64_t> kept_blocks;
  // Panels with smaller bounds weigh so little that the fastest arithmetic will do for them. In a
  // block that is scanned whole, it will do for panels below `cut`, too.
  float fine_cut = std::numeric_limits<float>::lowest();
  // The values of rows with smaller logits are left out.
  double row_cut = -std::numeric_limits<double>::infinity();
  // The logarithm of an upper bound on the sum of exp(logit) over all rows that are left out, those
  // of skipped blocks included. -inf: no row is left out whose weight counts.
  double ln_left_out = -std::numeric_limits<double>::infinity();

  bool KeepsBlock(std::int64_t block) const {
    return (kept_blocks[static_cast<std::size_t>(block / 64)] >> (block % 64) & 1) != 0;
  }
  // The block must have a place.
  const float* bounds_of(std::int64_t block) const {
    return bounds + (places == nullptr ? block : places[block]) * block_stride;
  }
};

// Scans the candidate panels of one block for a tile of queries, as ScanBlock does. Scans the whole
// block for queries with many candidates in it, if values are added up and no rows are ranked.
// `block_index` is the index of the block in the pass. A state counts only rows of the panels that
// are scanned. If no row counts, the query's sums may stay unset. Returns the number of rows
// scanned for any of the queries.
std::int64_t ScanCandidates(const ScanPlan& plan, const PositionedBlock& block,
                            std::int64_t block_index, const HeadQuery* queries,
                            const Candidates* const* candidates, int query_count,
                            PartialState* states, double* sums);

// The largest logit and the log-sum-exp over the rows of one panel, formed in float64. -inf if none
// counts.
struct PanelLogits {
  double max = -kInfiniteLogit;
  double log_sum_exp = -kInfiniteLogit;
};
PanelLogits LogitsOfPanel(const ScanPlan& plan, const PositionedBlock& block,
                          const HeadQuery& query, std::int64_t panel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SECOND_LOOK_H_
