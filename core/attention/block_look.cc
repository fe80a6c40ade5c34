#include "core/attention/block_look.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/types/span.h"
#include "core/attention/block_choice.h"

namespace softlookup {
namespace {

using kernels::kBallGroupBlocks;

// The bounds of a look over groups of blocks. They begin as the bounds of whole groups, of which
// there are few. Those that matter are replaced by bounds of the single blocks.
class BoundsOfGroups {
 public:
  // blocks[first] is the first block of the look's task. Sets highest[b] for each of `blocks`.
  BoundsOfGroups(const ScanPlan& plan, const HeadQuery& query,
                 absl::Span<const PositionedBlock* const> blocks, std::int64_t first,
                 absl::Span<const kernels::KeyBalls* const> groups, double* highest)
      : plan_(plan),
        query_(query),
        blocks_(blocks),
        first_(static_cast<std::size_t>(first)),
        groups_(groups),
        highest_(highest),
        is_refined_(groups.size()) {
    Bound(0, first_);
    BoundGroups(plan, query, groups, highest + first_);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] == nullptr) Refine(i);
    }
    Bound(BeginOf(groups.size()), blocks.size());
  }

  // Bounds the single blocks of each group whose bound is `cut` or more. Returns false if there is
  // none.
  bool RefineFrom(double cut) {
    bool any = false;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (is_refined_[i] || highest_[BeginOf(i)] < cut) continue;
      Refine(i);
      any = true;
    }
    return any;
  }
  // Bounds the single blocks of the group that has blocks[block].
  void RefineGroupOf(std::size_t block) {
    if (block < first_ || block >= BeginOf(groups_.size())) return;
    const std::size_t group = (block - first_) / kBallGroupBlocks;
    if (!is_refined_[group]) Refine(group);
  }

 private:
  // Returns the block that the group begins with.
  std::size_t BeginOf(std::size_t group) const { return first_ + group * kBallGroupBlocks; }
  void Bound(std::size_t begin, std::size_t end) {
    BoundBlocks(plan_, query_, blocks_.subspan(begin, end - begin), highest_ + begin);
  }
  void Refine(std::size_t group) {
    Bound(BeginOf(group), BeginOf(group + 1));
    is_refined_[group] = true;
  }

  const ScanPlan& plan_;
  const HeadQuery& query_;
  const absl::Span<const PositionedBlock* const> blocks_;
  const std::size_t first_;
  const absl::Span<const kernels::KeyBalls* const> groups_;
  double* const highest_;
  std::vector<bool> is_refined_;
};

}  // namespace

void BlockLook::Begin() {
  highest_.resize(looks_.all().size());
  for (std::vector<double>& highest : highest_) {
    highest.assign(static_cast<std::size_t>(looks_.blocks().count()), kInfiniteLogit);
  }
}

bool BlockLook::AnyToBound() const {
  return std::ranges::any_of(
      looks_.all(), [](const Look& look) { return look.may_skip_blocks && look.groups.empty(); });
}

void BlockLook::Bound(std::int64_t begin, std::int64_t end, std::int64_t tile_index) {
  const RoundLooks::Tile& tile = looks_.tile(tile_index);
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    const Look& look = looks_[i];
    if (!look.may_skip_blocks || !look.groups.empty() || !looks_.TaskContinues(look)) continue;
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
    std::optional<BoundsOfGroups> groups;
    if (!look.groups.empty()) {
      groups.emplace(plan, looks_.QueryOf(look), blocks, looks_.FirstBlockOf(look), look.groups,
                     highest.data());
    }
    VisitFirstRows(look.goal.first_rows, blocks, looks_.QueryOf(look),
                   [&](std::size_t block, std::int64_t /*panel*/) {
                     if (groups) groups->RefineGroupOf(block);
                     highest[block] = kInfiniteLogit;
                   });
    const auto refine = [&groups](double cut) { return groups && groups->RefineFrom(cut); };
    const int number = static_cast<int>(i - tile.begin);
    const auto panel_bounds = [&](const PositionedBlock& block) -> absl::Span<const float> {
      return {bounder.Bound(tile.queries, kernels::PanelBound::kLargest, block, number, number + 1),
              static_cast<std::size_t>(block.view.panel_count())};
    };
    look.blocks =
        ChooseBlocks(plan, tile.queries.query(number), tile.queries.bounds(number), blocks, highest,
                     look.block_row_count, look.goal, refine, panel_bounds);
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
