#include "core/attention/sample_look.h"

#include <algorithm>
#include <cmath>

#include "core/attention/error_budget.h"
#include "core/attention/look_goal.h"
#include "core/attention/panel_choice.h"
#include "core/attention/panel_walk.h"
#include "core/base/part_count.h"

namespace softlookup {
namespace {

// Where masses rank rows, a look ends if the sample's cut is more than this many nats below the
// sample's largest bound. Masses of rows that far below are too small for float32 to rank the rows.
constexpr double kRankedNatsMax = 60;

}  // namespace

std::int64_t SampleLook::BoundBytesMax(const AlignedBlocks& blocks) {
  const std::int64_t sampled = PartCount(blocks.count(), kStride) + 1;
  return sampled * blocks.panels_max() * static_cast<std::int64_t>(sizeof(float));
}

void SampleLook::Begin() {
  sampled_blocks_.clear();
  places_.clear();
  bounds_.clear();
  if (std::ranges::all_of(looks_.all(), &Look::skips)) return;
  const auto count = static_cast<std::size_t>(blocks_.count());
  std::vector<bool> is_sampled(count);
  const Look* last = nullptr;  // The last look so far that reads all blocks.
  for (const Look& look : looks_.all()) {
    if (look.skips()) continue;
    const bool is_of_same_task = last != nullptr && looks_.ShareTask(*last, look);
    last = &look;
    if (is_of_same_task) continue;
    for (std::size_t b = 0; b < count; ++b) {
      const PositionedBlock* block = looks_.BlockOf(look, static_cast<std::int64_t>(b));
      if (block != nullptr && IsSampled(*block)) is_sampled[b] = true;
    }
  }
  places_.assign(count, -1);
  for (std::size_t b = 0; b < count; ++b) {
    if (!is_sampled[b]) continue;
    places_[b] = std::ssize(sampled_blocks_);
    sampled_blocks_.push_back(static_cast<std::int64_t>(b));
  }
  // LookAt sets no bounds where the task has no block, or past a block's last panel. Those stay
  // -inf.
  bounds_.assign(
      looks_.all().size() * sampled_blocks_.size() * static_cast<std::size_t>(blocks_.panels_max()),
      static_cast<float>(-kInfiniteLogit));
}

void SampleLook::LookAt(std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
                        std::int64_t tile_end) {
  WalkPanels(
      looks_,
      absl::MakeConstSpan(sampled_blocks_)
          .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
      looks_.ContinuingTiles(tile_begin, tile_end),
      [](const RoundLooks::Tile&) { return kernels::PanelBound::kLargest; },
      [](const Look& look, std::int64_t /*block_index*/, const PositionedBlock& block) {
        return !look.skips() && IsSampled(block);
      },
      [this](std::int64_t index, std::int64_t block_index) {
        return bounds_.data() + BoundsOffset(index, places_[static_cast<std::size_t>(block_index)]);
      });
}

void SampleLook::Choose(std::int64_t tile_index) {
  RoundLooks::Tile& tile = looks_.tile(tile_index);
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    Look& look = looks_[i];
    if (!look.continues || !looks_.TaskContinues(look) || look.skips()) continue;
    const int number = static_cast<int>(i - tile.begin);
    const std::vector<float> sample = SampleOf(i);
    look.continues = sample.empty() || SavesMost(tile, number, sample);
    // A bound can be far above every possible logit, so range.highest limits the reference.
    const double reference =
        sample.empty()
            ? look.range.likely_highest
            : std::min<double>(*std::max_element(sample.begin(), sample.end()), look.range.highest);
    tile.queries.SetReference(number, reference);
  }
}

void SampleLook::CopyTo(std::int64_t index, absl::Span<float> bounds) const {
  const std::int64_t panels = blocks_.panels_max();
  for (std::int64_t place = 0; place < std::ssize(sampled_blocks_); ++place) {
    const std::int64_t block = sampled_blocks_[static_cast<std::size_t>(place)];
    std::copy_n(bounds_.data() + BoundsOffset(index, place), panels,
                bounds.data() + block * panels);
  }
}

std::vector<float> SampleLook::SampleOf(std::int64_t index) const {
  const Look& look = looks_[index];
  std::vector<float> sample;
  for (std::int64_t place = 0; place < std::ssize(sampled_blocks_); ++place) {
    const PositionedBlock* block =
        looks_.BlockOf(look, sampled_blocks_[static_cast<std::size_t>(place)]);
    if (block == nullptr || block->sketch == nullptr || !IsSampled(*block)) continue;
    const float* bounds = bounds_.data() + BoundsOffset(index, place);
    std::copy_if(bounds, bounds + block->view.panel_count(), std::back_inserter(sample),
                 [](float bound) { return bound < kInfiniteLogit; });
  }
  const auto is_none = [](float bound) { return bound == -kInfiniteLogit; };
  if (std::ranges::all_of(sample, is_none)) sample.clear();
  return sample;
}

bool SampleLook::SavesMost(const RoundLooks::Tile& tile, int number,
                           absl::Span<const float> sample) const {
  const ScanPlan& plan = tile.queries.plan();
  const Look& look = looks_[tile.begin + number];
  const double kept_max = KeptPartMax(look.goal) * static_cast<double>(sample.size());
  if (look.goal.ranks > 0) {
    const std::int64_t ranks = look.goal.ranks == LookGoal::kAllRanks
                                   ? look.goal.ranks
                                   : std::max<std::int64_t>(1, look.goal.ranks / kStride);
    const RankChoice choice =
        ChooseByRank(sample, tile.queries.lower_of(number), ranks, look.goal.threshold);
    if (static_cast<double>(choice.kept) > kept_max) return false;
    // Masses that are much smaller than the largest cannot rank rows (kRankedNatsMax).
    if (look.goal.weighs_all && choice.cut < *std::ranges::max_element(sample) - kRankedNatsMax) {
      return false;
    }
  }
  if (!look.goal.weighs_all) return true;
  // Estimates a panel's mass as that of one row with the logit of the panel's bound, relative to
  // the best bound of the sample.
  const double best = *std::ranges::max_element(sample);
  const double part = LookBudgetOf(plan.options).panels;
  const double likely_mass = std::exp(look.range.likely_highest - best) / kStride;
  if (!look.needs_float64 || look.coarse_part == 0) {
    // The look then pays only if enough panels are left out. A panel whose mass is above `part` of
    // all is kept. Counting such panels takes no exponentials. kRounding is more than the roundings
    // of the masses below.
    constexpr double kRounding = 1e-3;
    const double mass_max = std::max(static_cast<double>(sample.size()), likely_mass);
    const double cut = best + std::log(part * mass_max) + kRounding;
    const auto kept = std::ranges::count_if(sample, [cut](float bound) { return bound > cut; });
    if (static_cast<double>(kept) > kept_max) return false;
  }
  std::vector<float> masses;
  double mass = 0;
  for (const float bound : sample) {
    // -87 keeps the mass above 0: for ChooseByMass, 0 is a panel of which no row counts.
    masses.push_back(static_cast<float>(std::exp(std::max(bound - best, -87.0))));
    mass += masses.back();
  }
  // The store's other rows may be like those of the sample, or one of them may be much like the
  // query. The larger mass of these two cases is assumed. The sample is 1 / kStride of the
  // store, so it gets that part of the one row's mass.
  mass = std::max(mass, likely_mass);
  const MassChoice choice = ChooseByMass(masses, 1, mass, part, look.coarse_part);
  return SecondLookPays(look, choice, masses, std::ssize(masses));
}

}  // namespace softlookup
