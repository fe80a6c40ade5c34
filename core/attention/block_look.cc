#include "core/attention/block_look.h"

#include <algorithm>

#include "absl/types/span.h"
#include "core/attention/block_choice.h"

namespace softlookup {

void BlockLook::Begin() {
  highest_.resize(looks_.all().size());
  for (std::vector<double>& highest : highest_) {
    highest.assign(static_cast<std::size_t>(looks_.blocks().count()), kInfiniteLogit);
  }
}

void BlockLook::Bound(std::int64_t begin, std::int64_t end, std::int64_t tile_index) {
  const RoundLooks::Tile& tile = looks_.tile(tile_index);
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    const Look& look = looks_[i];
    if (!look.may_skip_blocks || !looks_.TaskContinues(look)) continue;
    BoundBlocks(tile.queries.plan(), looks_.QueryOf(look), looks_.BlocksOf(look, begin, end),
                highest_[static_cast<std::size_t>(i)].data() + begin);
  }
}

void BlockLook::Choose(std::int64_t tile_index) {
  RoundLooks::Tile& tile = looks_.tile(tile_index);
  const ScanPlan& plan = tile.queries.plan();
  PanelBounder bounder;
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    Look& look = looks_[i];
    if (!look.may_skip_blocks || !looks_.TaskContinues(look)) continue;
    const std::vector<const PositionedBlock*> blocks =
        looks_.BlocksOf(look, 0, looks_.blocks().count());
    std::vector<double>& highest = highest_[static_cast<std::size_t>(i)];
    VisitFirstRows(
        look.goal.first_rows, blocks, looks_.QueryOf(look),
        [&highest](std::size_t block, std::int64_t /*panel*/) { highest[block] = kInfiniteLogit; });
    const int number = static_cast<int>(i - tile.begin);
    const auto panel_bounds = [&](const PositionedBlock& block) -> absl::Span<const float> {
      return {bounder.Bound(tile.queries, kernels::PanelBound::kLargest, block, number, number + 1),
              static_cast<std::size_t>(block.view.panel_count())};
    };
    look.blocks = ChooseBlocks(plan, tile.queries.query(number), tile.queries.bounds(number),
                               blocks, highest, look.goal, panel_bounds);
    if (!look.skips()) continue;
    look.places.assign(blocks.size(), -1);
    std::int32_t place = 0;
    for (const std::int32_t block : *look.blocks.read) {
      look.places[static_cast<std::size_t>(block)] = place++;
    }
    tile.queries.SetReference(number, std::min(look.blocks.largest_bound, look.range.highest));
  }
}

}  // namespace softlookup
