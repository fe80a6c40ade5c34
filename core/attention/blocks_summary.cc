#include "core/attention/blocks_summary.h"

#include <algorithm>
#include <cstddef>

namespace softlookup {
namespace {

using kernels::kBallGroupBlocks;

// Returns the balls that hold the keys of all `blocks`, which are kBallGroupBlocks. Returns null if
// there are none, or if a block has no balls of its own or no row that counts. Lookups may have to
// choose among the blocks of a group, and must not choose such a block.
const kernels::KeyBalls* GroupBallsOf(absl::Span<const PositionedBlock> blocks) {
  const auto has_balls = [](const PositionedBlock& block) {
    return block.sketch != nullptr && block.sketch->has_balls() &&
           block.CountOf({.begin = 0, .end = block.view.row_count}) > 0;
  };
  return std::ranges::all_of(blocks, has_balls) ? blocks.back().group_balls : nullptr;
}

}  // namespace

BlocksSummary SummaryOf(absl::Span<const PositionedBlock> blocks) {
  BlocksSummary summary;
  if (blocks.empty()) return summary;
  summary.begin = blocks.front().first_position;
  summary.end = blocks.back().end_position();
  for (const PositionedBlock& block : blocks) {
    const std::int64_t row_count = block.view.row_count;
    summary.row_count += row_count;
    summary.counting_row_count += block.CountOf({.begin = 0, .end = row_count});
    summary.panel_count += block.view.panel_count();
    summary.panels_max = std::max(summary.panels_max, block.view.panel_count());
    if (block.sketch == nullptr) continue;
    ++summary.sketched_count;
    summary.sketches.Add(*block.sketch);
    if (block.sketch->has_balls()) summary.balls.Add(block.sketch->balls);
  }
  if (blocks.front().number % kBallGroupBlocks != 0) return summary;
  std::size_t grouped_count = 0;
  for (std::size_t end = kBallGroupBlocks; end <= blocks.size(); end += kBallGroupBlocks) {
    summary.groups.push_back(
        GroupBallsOf(blocks.subspan(end - kBallGroupBlocks, kBallGroupBlocks)));
    if (summary.groups.back() != nullptr) grouped_count += kBallGroupBlocks;
  }
  if (grouped_count * 2 < blocks.size()) summary.groups.clear();
  return summary;
}

}  // namespace softlookup
