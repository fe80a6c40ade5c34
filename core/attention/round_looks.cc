#include "core/attention/round_looks.h"

#include "core/base/check.h"
#include "core/kernels/bound_search.h"

namespace softlookup {

bool SecondLookPays(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                    std::int64_t panel_count) {
  const auto panels = static_cast<double>(panel_count);
  if (static_cast<double>(choice.kept) <= KeptPartMax(look.goal) * panels) return true;
  if (!look.needs_float64 || look.coarse_part == 0) return false;
  const std::int64_t fine = kernels::CountBoundsFrom(masses, choice.fine_cut);
  return static_cast<double>(fine) <= kFinePartMax * panels;
}

void RoundLooks::Begin(const HeadQueryRound& round) {
  round_ = &round;
  looks_.clear();
  tiles_.clear();
}

void RoundLooks::AddTile(std::int64_t begin, std::int64_t end) {
  SOFTLOOKUP_CHECK(begin == (tiles_.empty() ? 0 : tiles_.back().end()) && begin < end &&
                   end <= std::ssize(looks_))
      << "looks from " << begin << " to " << end << " of " << looks_.size();
  const HeadQueryRef& first = round_->refs[(*this)[begin].query];
  std::vector<const HeadQuery*> queries;
  std::vector<SketchBounds> sketches;
  for (std::int64_t i = begin; i < end; ++i) {
    const Look& look = (*this)[i];
    queries.push_back(&QueryOf(look));
    sketches.push_back(look.sketches);
  }
  tiles_.push_back({.begin = begin,
                    .queries = LookTile(first.task->head_queries().PlanOf(first.number),
                                        std::move(queries), sketches)});
}

std::vector<const RoundLooks::Tile*> RoundLooks::ContinuingTiles(std::int64_t begin,
                                                                 std::int64_t end) const {
  const auto continues = [this](const Tile& tile) {
    for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
      const Look& look = (*this)[i];
      if (look.continues && TaskContinues(look)) return true;
    }
    return false;
  };
  std::vector<const Tile*> tiles;
  for (std::int64_t t = begin; t < end; ++t) {
    const Tile& tile = tiles_[static_cast<std::size_t>(t)];
    if (continues(tile)) tiles.push_back(&tile);
  }
  return tiles;
}

std::vector<const PositionedBlock*> RoundLooks::BlocksOf(const Look& look, std::int64_t begin,
                                                         std::int64_t end) const {
  std::vector<const PositionedBlock*> blocks;
  blocks.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t block = begin; block < end; ++block) blocks.push_back(BlockOf(look, block));
  return blocks;
}

}  // namespace softlookup
