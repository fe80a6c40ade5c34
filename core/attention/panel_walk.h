#ifndef SOFTLOOKUP_CORE_ATTENTION_PANEL_WALK_H_
#define SOFTLOOKUP_CORE_ATTENTION_PANEL_WALK_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "core/attention/look_tile.h"
#include "core/attention/positioned_block.h"
#include "core/attention/round_looks.h"

namespace softlookup {

// Bounds the panels of one block for the looks of a tile, as WalkPanels does.
template <typename Reads, typename BoundsAt>
void BoundForTile(const RoundLooks& looks, const RoundLooks::Tile& tile, std::int64_t block_index,
                  kernels::PanelBound form, const Reads& reads, const BoundsAt& bounds_at,
                  PanelBounder& bounder) {
  // Returns null if the look does not read the block.
  const auto block_of = [&](std::int64_t i) -> const PositionedBlock* {
    const Look& look = looks[i];
    const PositionedBlock* block = looks.BlockOf(look, block_index);
    return block != nullptr && reads(look, block_index, *block) ? block : nullptr;
  };
  std::int64_t run_end = tile.begin;
  for (std::int64_t i = tile.begin; i < tile.end(); i = run_end) {
    run_end = i + 1;
    const PositionedBlock* block = block_of(i);
    if (block == nullptr) continue;
    for (; run_end < tile.end(); ++run_end) {
      const PositionedBlock* other = block_of(run_end);
      if (other == nullptr || !AreSameRows(*block, *other)) break;
    }
    const float* found = bounder.Bound(tile.queries, form, *block, static_cast<int>(i - tile.begin),
                                       static_cast<int>(run_end - tile.begin));
    for (std::int64_t of = i; of < run_end; ++of, found += PanelBounder::kStride) {
      if (!looks[of].continues) continue;
      std::copy_n(found, block->view.panel_count(), bounds_at(of, block_index));
    }
  }
}

// Walks over blocks of the pass, and bounds their panels for the looks of some tiles. SampleLook
// and PanelLook say what to read, and where the bounds go:
//   form_of(tile) returns the form of the bounds of a tile's looks.
//   reads(look, block_index, block) returns true if the look reads the sketch of the block.
//   bounds_at(i, block_index) returns where the bounds of looks[i] for the block's panels begin.
// Looks that have ended get no bounds.
template <typename FormOf, typename Reads, typename BoundsAt>
void WalkPanels(const RoundLooks& looks, absl::Span<const std::int64_t> blocks,
                absl::Span<const RoundLooks::Tile* const> tiles, const FormOf& form_of,
                const Reads& reads, const BoundsAt& bounds_at) {
  PanelBounder bounder;  // Prepares a block once for all tiles of equal options.
  for (const std::int64_t block_index : blocks) {
    for (const RoundLooks::Tile* tile : tiles) {
      BoundForTile(looks, *tile, block_index, form_of(*tile), reads, bounds_at, bounder);
    }
  }
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PANEL_WALK_H_
