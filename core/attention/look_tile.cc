#include "core/attention/look_tile.h"

#include <algorithm>
#include <utility>

#include "core/attention/positioned_block.h"
#include "core/attention/row_logits.h"

namespace softlookup {

using kernels::kTileQueries;
using kernels::PanelRange;
using kernels::RowRange;

bool IsSketched(const PositionedBlock& block, const HeadQuery& query) {
  const RowRange range = RowsOf(block, query);
  return block.sketch != nullptr && range.begin == 0 && range.end == block.view.row_count;
}

LookTile::LookTile(const ScanPlan& plan, std::vector<const HeadQuery*> queries,
                   absl::Span<const SketchBounds> sketches)
    : plan_(plan), queries_(std::move(queries)), references_(queries_.size()) {
  std::array<const float*, kTileQueries> components = {};
  for (int i = 0; i < count(); ++i) components[static_cast<std::size_t>(i)] = query(i).components;
  packed_.Pack(components.data(), count(), plan_.key_dims.count);
  for (int i = 0; i < count(); ++i) {
    bounds_.emplace_back(plan_, query(i), packed_, i, sketches[static_cast<std::size_t>(i)]);
    factors_.push_back(bounds(i).factors());
  }
}

const float* PanelBounder::Bound(const LookTile& tile, kernels::PanelBound form,
                                 const PositionedBlock& block, int begin, int end) {
  bool any_is_sketched = false;
  for (int i = begin; i < end; ++i) any_is_sketched |= IsSketched(block, tile.query(i));
  if (any_is_sketched) {
    Prepare(tile.plan(), block);
    const bool is_whole = begin == 0 && end == tile.count();
    kernels::BoundPanels(form, *block.sketch,
                         is_whole ? tile.packed_ : tile.packed_.Some(begin, end),
                         tile.factors_.data() + begin, tile.references_.data() + begin,
                         terms_.terms(), kStride, bounds_.data());
  }
  const float none =
      form == kernels::PanelBound::kMass ? 0.0f : static_cast<float>(-kInfiniteLogit);
  for (int i = begin; i < end; ++i) {
    if (IsSketched(block, tile.query(i))) continue;
    float* bounds = bounds_.data() + (i - begin) * kStride;
    const PanelRange some = PanelsOf(RowsOf(block, tile.query(i)));
    std::fill_n(bounds, block.view.panel_count(), none);
    std::fill(bounds + some.begin, bounds + some.end, static_cast<float>(kInfiniteLogit));
  }
  if (block.row_mask != nullptr) ClearMaskedPanels(block, none, end - begin);
  return bounds_.data();
}

void PanelBounder::ClearMaskedPanels(const PositionedBlock& block, float none, int query_count) {
  for (std::int64_t panel = 0; panel < block.view.panel_count(); ++panel) {
    const std::int64_t first = panel * kernels::kPanelRows;
    const std::int64_t end = std::min(first + kernels::kPanelRows, block.view.row_count);
    if (block.CountOf({.begin = first, .end = end}) > 0) continue;
    for (int q = 0; q < query_count; ++q) {
      bounds_[static_cast<std::size_t>(q * kStride + panel)] = none;
    }
  }
}

void PanelBounder::Prepare(const ScanPlan& plan, const PositionedBlock& block) {
  if (block_ != nullptr && AreSameRows(*block_, block) && score_ == plan.options.score &&
      temperature_ == plan.options.temperature) {
    return;
  }
  terms_.Prepare(plan, block);
  block_ = &block;
  score_ = plan.options.score;
  temperature_ = plan.options.temperature;
}

}  // namespace softlookup
