#include "core/attention/panel_look.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/attention/error_budget.h"
#include "core/attention/look_goal.h"
#include "core/attention/panel_choice.h"
#include "core/attention/panel_walk.h"
#include "core/base/check.h"
#include "core/kernels/bound_search.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

// A thread keeps the vector of bounds of its last PanelLook for its next one, if the vector has at
// most this many bytes. A new vector would take new pages, which the operating system has to clear.
constexpr std::size_t kSpareBytesMax = std::size_t{8} << 20;
std::vector<float>& SpareBounds() {
  thread_local std::vector<float> spare;
  return spare;
}

}  // namespace

PanelLook::PanelLook(RoundLooks& looks, const SampleLook& sample)
    : looks_(looks),
      sample_(sample),
      blocks_(looks.blocks()),
      bounds_(std::exchange(SpareBounds(), {})) {}

std::int64_t PanelLook::BoundBytesMax(const AlignedBlocks& blocks) {
  return blocks.count() * blocks.panels_max() * static_cast<std::int64_t>(sizeof(float));
}

PanelLook::~PanelLook() {
  if (bounds_.capacity() * sizeof(float) <= kSpareBytesMax) SpareBounds() = std::move(bounds_);
}

void PanelLook::Begin() {
  FindReadBlocks();
  bounds_begins_.assign(looks_.all().size(), 0);
  std::size_t size = 0;
  for (std::size_t i = 0; i < bounds_begins_.size(); ++i) {
    const Look& look = looks_.all()[i];
    if (!look.continues) continue;
    bounds_begins_[i] = size;
    size += PanelCountOf(look);
  }
  // LookAt sets no bounds where the task has no block, or past a block's last panel. Those keep
  // their initial value: a mass of 0 here, or a largest logit of -inf below. Without clear(),
  // resize() would copy the bounds of the last round to the larger vector.
  bounds_.clear();
  bounds_.resize(size);
  for (std::int64_t i = 0; i < std::ssize(looks_.all()); ++i) {
    Look& look = looks_[i];
    if (!look.continues) continue;
    const absl::Span<float> bounds = BoundsOf(i);
    if (!look.goal.weighs_all) {
      std::ranges::fill(bounds, static_cast<float>(-kInfiniteLogit));
      if (!look.skips()) sample_.CopyTo(i, bounds);
    }
    // kept_blocks begins empty. So a task that is cancelled before its candidates are chosen keeps
    // no block.
    look.candidates = {.bounds = bounds.data(),
                       .block_stride = blocks_.panels_max(),
                       .places = look.skips() ? look.places.data() : nullptr,
                       .kept_blocks = BlockSet(blocks_.count())};
  }
}

void PanelLook::FindReadBlocks() {
  read_blocks_.clear();
  if (!std::ranges::all_of(looks_.all(), &Look::skips)) {
    read_blocks_.resize(static_cast<std::size_t>(blocks_.count()));
    std::iota(read_blocks_.begin(), read_blocks_.end(), 0);
    return;
  }
  for (const Look& look : looks_.all()) {
    read_blocks_.insert(read_blocks_.end(), look.blocks.read->begin(), look.blocks.read->end());
  }
  std::ranges::sort(read_blocks_);
  read_blocks_.erase(std::unique(read_blocks_.begin(), read_blocks_.end()), read_blocks_.end());
}

void PanelLook::LookAt(std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
                       std::int64_t tile_end) {
  WalkPanels(
      looks_,
      absl::MakeConstSpan(read_blocks_)
          .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
      looks_.ContinuingTiles(tile_begin, tile_end),
      // Either all looks of a tile weigh all rows, or none does.
      [this](const RoundLooks::Tile& tile) {
        return looks_[tile.begin].goal.weighs_all ? kernels::PanelBound::kMass
                                                  : kernels::PanelBound::kLargest;
      },
      // Begin has copied the sample's bounds on logits. Masses need a reference, so the sample's
      // own masses are computed here.
      [](const Look& look, std::int64_t block_index, const PositionedBlock& block) {
        return look.skips() ? look.Reads(block_index)
                            : look.goal.weighs_all || !SampleLook::IsSampled(block);
      },
      [this](std::int64_t index, std::int64_t block_index) {
        return bounds_.data() + bounds_begins_[static_cast<std::size_t>(index)] +
               PlaceOf(looks_[index], block_index) * blocks_.panels_max();
      });
}

void PanelLook::Choose(std::int64_t tile_index) {
  const RoundLooks::Tile& tile = looks_.tile(tile_index);
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    Look& look = looks_[i];
    if (!look.continues || !looks_.TaskContinues(look)) continue;
    if (look.goal.weighs_all) {
      ChooseByMassOf(tile, i);
    } else {
      ChooseByRankOf(tile, i);
    }
    if (look.continues) FindKeptBlocks(i);
  }
}

void PanelLook::ChooseByRankOf(const RoundLooks::Tile& tile, std::int64_t index) {
  Look& look = looks_[index];
  const RankChoice choice =
      ChooseByRank(BoundsOf(index), tile.queries.lower_of(static_cast<int>(index - tile.begin)),
                   look.goal.ranks, look.goal.threshold);
  look.candidates.cut = choice.cut;
  KeepFirstRows(index);
  look.continues = look.skips() || !look.goal.sums_values ||
                   static_cast<double>(choice.kept) <=
                       KeptPartMax(look.goal) * static_cast<double>(look.panel_count);
}

void PanelLook::ChooseByMassOf(const RoundLooks::Tile& tile, std::int64_t index) {
  const ScanPlan& plan = tile.queries.plan();
  const int number = static_cast<int>(index - tile.begin);
  Look& look = looks_[index];
  const absl::Span<const float> bounds = BoundsOf(index);
  const double reference = tile.queries.reference(number);
  const LookBudget budget = LookBudgetOf(plan.options);
  const double proved = std::exp(-tile.queries.bounds(number).gap() - 1e-3) / kernels::kMassExcess;
  // How far rounding can move the best panel's logits, in nats.
  constexpr double kRounding = 1e-6;
  PanelLogits best = BestPanel(plan, look, bounds);
  best.max = std::max(best.max, look.blocks.best.max);
  best.log_sum_exp = std::max(best.log_sum_exp, look.blocks.best.log_sum_exp);
  const double mass_known = std::exp(best.log_sum_exp - reference - kRounding);
  // The answer states the largest logit. So panels that may have a larger logit than the best panel
  // are kept and scored in float64, however little they weigh.
  const double kept_mass = std::exp(best.max - reference - kRounding);
  const double skipped_mass = std::exp(look.blocks.ln_left_out - reference);
  MassChoice choice = ChooseByMass(bounds, proved, mass_known, budget.panels, look.coarse_part,
                                   kept_mass, skipped_mass);
  if (look.goal.ranks > 0) {
    choice.cut = std::min(
        choice.cut,
        RankCutOfMasses(bounds, reference, tile.queries.lower_of(number), look.goal.ranks));
    KeepFirstRows(index);
    choice.kept = kernels::CountBoundsFrom(bounds, choice.cut);
  }
  look.candidates.cut = choice.cut;
  if (look.coarse_part > 0) {
    look.candidates.fine_cut = std::min(choice.fine_cut, static_cast<float>(kept_mass));
  }
  // If the lower bound on the mass overflows, the best panel's log-sum-exp takes its place.
  const double ln_mass =
      std::isfinite(choice.mass) ? std::log(choice.mass) + reference : best.log_sum_exp - kRounding;
  // If all rows of the kept panels were just below row_cut, they would use up budget.rows.
  look.candidates.row_cut =
      ln_mass + std::log(budget.rows) -
      std::log(static_cast<double>(kPanelRows * std::max<std::int64_t>(choice.kept, 1)));
  // skipped_mass, and with it choice.left_out, can have underflowed to 0. The logarithm
  // look.blocks.ln_left_out has not.
  look.candidates.ln_left_out =
      std::max(std::log(choice.left_out) + reference, look.blocks.ln_left_out);
  // Skipping blocks saves more time than the looks take, however many panels of the other blocks
  // remain.
  look.continues = look.skips() || SecondLookPays(look, choice, bounds, look.panel_count);
}

void PanelLook::KeepFirstRows(std::int64_t index) {
  const Look& look = looks_[index];
  if (look.goal.first_rows == 0) return;
  const absl::Span<float> bounds = BoundsOf(index);
  VisitFirstRows(look.goal.first_rows, looks_.BlocksOf(look, 0, blocks_.count()),
                 looks_.QueryOf(look), [&](std::size_t block, std::int64_t panel) {
                   const std::int64_t place = PlaceOf(look, static_cast<std::int64_t>(block));
                   bounds[static_cast<std::size_t>(place * blocks_.panels_max() + panel)] =
                       static_cast<float>(kInfiniteLogit);
                 });
}

void PanelLook::FindKeptBlocks(std::int64_t index) {
  Look& look = looks_[index];
  Candidates& candidates = look.candidates;
  std::vector<std::int32_t> kept;
  kernels::FindGroupsFrom(BoundsOf(index), candidates.block_stride, candidates.cut, kept);
  for (const std::int32_t place : kept) candidates.kept_blocks.Add(BlockAt(look, place));
}

PanelLogits PanelLook::BestPanel(const ScanPlan& plan, const Look& look,
                                 absl::Span<const float> bounds) const {
  // If a block has a sketch, the bound of one of its panels is infinite in two cases: the bound on
  // its mass is too large for float32, or the query attends to only some rows of the block. In the
  // first case, the panel is likely to have larger logits than those of finite bounds. At most
  // kBeyondMax panels of infinite bounds are scored. If the best panel is not among them, more
  // panels are kept than have to be, and the answer is as exact.
  constexpr std::size_t kBeyondMax = 4;
  std::vector<std::int64_t> tried;
  std::int64_t best = -1;
  const float largest =
      std::max(kernels::LargestFiniteBound(bounds), std::numeric_limits<float>::denorm_min());
  for (std::size_t begin = 0; begin < bounds.size(); begin += 64) {
    std::uint64_t found = kernels::BoundsFrom(bounds.subspan(begin, 64), largest);
    for (; found != 0; found &= found - 1) {
      const std::size_t at = begin + static_cast<std::size_t>(std::countr_zero(found));
      const auto panel = static_cast<std::int64_t>(at);
      if (bounds[at] < kInfiniteLogit) {
        if (best < 0) best = panel;
      } else if (tried.size() < kBeyondMax && RowsAt(look, panel)->sketch != nullptr) {
        tried.push_back(panel);
      }
    }
  }
  if (best >= 0) tried.push_back(best);
  PanelLogits found;
  for (const std::int64_t at : tried) {
    const PanelLogits logits =
        LogitsOfPanel(plan, *RowsAt(look, at), looks_.QueryOf(look), at % blocks_.panels_max());
    found.max = std::max(found.max, logits.max);
    found.log_sum_exp = std::max(found.log_sum_exp, logits.log_sum_exp);
  }
  return found;
}

const PositionedBlock* PanelLook::RowsAt(const Look& look, std::int64_t panel) const {
  const PositionedBlock* block = looks_.BlockOf(look, BlockAt(look, panel / blocks_.panels_max()));
  SOFTLOOKUP_CHECK(block != nullptr) << "bounds of panel " << panel;
  return block;
}

}  // namespace softlookup
