#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCKS_SUMMARY_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCKS_SUMMARY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/ball_bounds.h"
#include "core/attention/block_scan.h"
#include "core/attention/logit_bounds.h"
#include "core/attention/positioned_block.h"
#include "core/kernels/key_ball.h"

namespace softlookup {

// What a lookup has to know of all its blocks together. A store of millions of rows has thousands
// of blocks. If the summary is known, a lookup that reads a few of them need not follow the
// pointers of all.
struct BlocksSummary {
  std::uint64_t begin = 0;  // The blocks cover the positions [begin, end).
  std::uint64_t end = 0;
  std::int64_t row_count = 0;           // Rows of the blocks' views.
  std::int64_t counting_row_count = 0;  // Those of them that the blocks' masks leave in.
  std::int64_t panel_count = 0;
  std::int64_t panels_max = 0;      // Panels of the block that has the most.
  std::int64_t sketched_count = 0;  // Blocks that have a sketch.
  SketchBounds sketches;
  BallsRange balls;
  // [i]: the balls of the group of blocks whose indices are from i * kBallGroupBlocks on. Null: the
  // group has none. Empty if fewer than half of the blocks are in a group that has balls: bounds on
  // groups would then save little.
  std::vector<const kernels::KeyBalls*> groups;

  // Returns true if the query attends to all positions of the blocks.
  bool IsWithin(const HeadQuery& query) const { return query.begin <= begin && query.end >= end; }
};

// `blocks` are in position order.
BlocksSummary SummaryOf(absl::Span<const PositionedBlock> blocks);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCKS_SUMMARY_H_
