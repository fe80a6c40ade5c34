#include "core/attention/panel_look.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/attention/error_budget.h"
#include "core/attention/look_goal.h"
#include "core/base/check.h"
#include "core/base/part_count.h"
#include "core/kernels/bound_search.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

// The sample is made of the blocks whose numbers are multiples of this.
constexpr std::int64_t kSampleStride = 16;
// Where masses rank rows, a look ends if the sample's cut is more than this many nats below its
// largest bound. Masses of rows that far below are too small for float32 to rank the rows.
constexpr double kRankedNatsMax = 60;

bool IsSampled(const PositionedBlock& block) { return block.number % kSampleStride == 0; }

// A thread keeps the memory of its last look's bounds for its next look, up to this many bytes.
// Otherwise the operating system would have to clear new pages for each look.
constexpr std::size_t kSpareBytesMax = std::size_t{8} << 20;
std::vector<float>& SpareBounds() {
  thread_local std::vector<float> spare;
  return spare;
}

}  // namespace

PanelLook::PanelLook(RoundLooks& looks)
    : looks_(looks), blocks_(looks.blocks()), bounds_(std::exchange(SpareBounds(), {})) {}

std::int64_t PanelLook::BoundBytesMax(const AlignedBlocks& blocks) {
  const std::int64_t sampled = PartCount(blocks.count(), kSampleStride) + 1;
  return (blocks.count() + sampled) * blocks.panels_max() *
         static_cast<std::int64_t>(sizeof(float));
}

PanelLook::~PanelLook() {
  if (bounds_.capacity() * sizeof(float) <= kSpareBytesMax) SpareBounds() = std::move(bounds_);
}

void PanelLook::Begin() {
  const auto count = static_cast<std::size_t>(blocks_.count());
  std::vector<bool> is_read(count), is_sampled(count);
  const Look* last = nullptr;  // The last look that reads all blocks.
  for (const Look& look : looks_.all()) {
    if (look.skips()) {
      for (const std::int32_t block : *look.blocks.read) {
        is_read[static_cast<std::size_t>(block)] = true;
      }
      continue;
    }
    const bool is_of_same_task = last != nullptr && looks_.ShareTask(*last, look);
    last = &look;
    if (is_of_same_task) continue;
    is_read.assign(count, true);
    for (std::size_t b = 0; b < count; ++b) {
      const PositionedBlock* block = looks_.BlockOf(look, static_cast<std::int64_t>(b));
      if (block != nullptr && IsSampled(*block)) is_sampled[b] = true;
    }
  }
  read_blocks_.clear();
  sampled_blocks_.clear();
  sample_places_.assign(count, -1);
  for (std::size_t b = 0; b < count; ++b) {
    if (is_read[b]) read_blocks_.push_back(static_cast<std::int64_t>(b));
    if (!is_sampled[b]) continue;
    sample_places_[b] = std::ssize(sampled_blocks_);
    sampled_blocks_.push_back(static_cast<std::int64_t>(b));
  }
  // LookAt sets no bounds where the task has no block, or past a block's last panel.
  samples_.assign(
      looks_.all().size() * sampled_blocks_.size() * static_cast<std::size_t>(blocks_.panels_max()),
      static_cast<float>(-kInfiniteLogit));
}

void PanelLook::BeginRest() {
  std::size_t size = 0;
  for (Look& look : looks_.all()) {
    if (!look.continues) continue;
    look.bounds_begin = size;
    size += PanelCountOf(look);
  }
  // LookAt sets no bounds where the task has no block, or past a block's last panel. Those keep
  // their initial value: a mass of 0 here, or a largest logit of -inf below. Without clear(),
  // resize() would copy the bounds of the last round to larger memory.
  bounds_.clear();
  bounds_.resize(size);
  for (std::int64_t i = 0; i < std::ssize(looks_.all()); ++i) {
    Look& look = looks_[i];
    if (!look.continues) continue;
    const absl::Span<float> bounds = BoundsOf(look);
    if (!look.goal.weighs_all) {
      std::ranges::fill(bounds, static_cast<float>(-kInfiniteLogit));
      if (!look.skips()) CopySample(i, bounds);
    }
    // kept_blocks begins empty. So a task that is cancelled before its candidates are chosen keeps
    // no block.
    look.candidates = {.bounds = bounds.data(),
                       .block_stride = blocks_.panels_max(),
                       .places = look.skips() ? look.places.data() : nullptr,
                       .kept_blocks = BlockSet(blocks_.count())};
  }
}

void PanelLook::CopySample(std::int64_t index, absl::Span<float> bounds) const {
  const std::int64_t panels = blocks_.panels_max();
  for (std::int64_t place = 0; place < std::ssize(sampled_blocks_); ++place) {
    const std::int64_t block = sampled_blocks_[static_cast<std::size_t>(place)];
    std::copy_n(samples_.data() + SampleOffset(index, place), panels,
                bounds.data() + block * panels);
  }
}

void PanelLook::LookAt(Part part, std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
                       std::int64_t tile_end) {
  const auto continues = [this](const RoundLooks::Tile& tile) {
    for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
      const Look& look = looks_[i];
      if (look.continues && looks_.TaskContinues(look)) return true;
    }
    return false;
  };
  std::vector<const RoundLooks::Tile*> tiles;
  for (std::int64_t t = tile_begin; t < tile_end; ++t) {
    const RoundLooks::Tile& tile = looks_.tile(t);
    if (continues(tile)) tiles.push_back(&tile);
  }
  PanelBounder bounder;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t block = blocks_of(part)[static_cast<std::size_t>(i)];
    for (const RoundLooks::Tile* tile : tiles) LookAtBlock(part, *tile, block, bounder);
  }
}

void PanelLook::LookAtBlock(Part part, const RoundLooks::Tile& tile, std::int64_t block_index,
                            PanelBounder& bounder) {
  // Masses need a reference, which is the largest bound of the sample. So the sample's own masses
  // are computed in Part::kRest. Either all looks of a tile weigh all rows, or none does.
  const bool looks_again = part == Part::kRest && looks_[tile.begin].goal.weighs_all;
  const kernels::PanelBound form =
      looks_again ? kernels::PanelBound::kMass : kernels::PanelBound::kLargest;
  // Returns null if the look does not read the block in this part.
  const auto block_of = [&](std::int64_t i) -> const PositionedBlock* {
    const Look& look = looks_[i];
    const PositionedBlock* block = looks_.BlockOf(look, block_index);
    if (block == nullptr || !look.Reads(block_index)) return nullptr;
    // A look that skips blocks needs no sample: ChooseBlocks has set its reference, and skipping
    // saves enough.
    const bool is_in_part = look.skips()
                                ? part == Part::kRest
                                : looks_again || (part == Part::kSample) == IsSampled(*block);
    return is_in_part ? block : nullptr;
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
      const Look& look = looks_[of];
      if (!look.continues) continue;
      float* to = nullptr;
      if (part == Part::kSample) {
        to = samples_.data() +
             SampleOffset(of, sample_places_[static_cast<std::size_t>(block_index)]);
      } else {
        const std::int64_t place =
            look.skips() ? look.places[static_cast<std::size_t>(block_index)] : block_index;
        to = bounds_.data() + look.bounds_begin + place * blocks_.panels_max();
      }
      std::copy_n(found, block->view.panel_count(), to);
    }
  }
}

void PanelLook::Choose(Part part, std::int64_t tile_index) {
  RoundLooks::Tile& tile = looks_.tile(tile_index);
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    const int number = static_cast<int>(i - tile.begin);
    Look& look = looks_[i];
    if (!look.continues || !looks_.TaskContinues(look)) continue;
    if (part == Part::kSample) {
      if (look.skips()) continue;
      const std::vector<float> sample = SampleOf(i);
      look.continues = sample.empty() || SampleSavesMost(tile, number, sample);
      // A bound can be far above every possible logit, so range.highest limits the reference.
      const double reference =
          sample.empty() ? look.range.likely_highest
                         : std::min<double>(*std::max_element(sample.begin(), sample.end()),
                                            look.range.highest);
      tile.queries.SetReference(number, reference);
    } else if (look.goal.weighs_all) {
      ChooseByMassOf(tile, number);
    } else {
      const RankChoice choice = ChooseByRank(BoundsOf(look), tile.queries.lower_of(number),
                                             look.goal.ranks, look.goal.threshold);
      look.candidates.cut = choice.cut;
      KeepFirstRows(look);
      look.continues = look.skips() || !look.goal.sums_values ||
                       static_cast<double>(choice.kept) <=
                           KeptPartMax(look.goal) * static_cast<double>(look.panel_count);
    }
    if (part == Part::kRest && look.continues) FindKeptBlocks(look);
  }
}

bool PanelLook::Saves(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                      std::int64_t panel_count) {
  const auto panels = static_cast<double>(panel_count);
  if (static_cast<double>(choice.kept) <= KeptPartMax(look.goal) * panels) return true;
  if (!look.needs_float64 || look.coarse_part == 0) return false;
  const std::int64_t fine = kernels::CountBoundsFrom(masses, choice.fine_cut);
  return static_cast<double>(fine) <= kFinePartMax * panels;
}

std::vector<float> PanelLook::SampleOf(std::int64_t index) const {
  const Look& look = looks_[index];
  std::vector<float> sample;
  for (std::int64_t place = 0; place < std::ssize(sampled_blocks_); ++place) {
    const PositionedBlock* block =
        looks_.BlockOf(look, sampled_blocks_[static_cast<std::size_t>(place)]);
    if (block == nullptr || block->sketch == nullptr || !IsSampled(*block)) continue;
    const float* bounds = samples_.data() + SampleOffset(index, place);
    std::copy_if(bounds, bounds + block->view.panel_count(), std::back_inserter(sample),
                 [](float bound) { return bound < kInfiniteLogit; });
  }
  const auto is_none = [](float bound) { return bound == -kInfiniteLogit; };
  if (std::ranges::all_of(sample, is_none)) sample.clear();
  return sample;
}

bool PanelLook::SampleSavesMost(const RoundLooks::Tile& tile, int number,
                                absl::Span<const float> sample) const {
  const ScanPlan& plan = tile.queries.plan();
  const Look& look = looks_[tile.begin + number];
  const double kept_max = KeptPartMax(look.goal) * static_cast<double>(sample.size());
  if (look.goal.ranks > 0) {
    const std::int64_t ranks = look.goal.ranks == LookGoal::kAllRanks
                                   ? look.goal.ranks
                                   : std::max<std::int64_t>(1, look.goal.ranks / kSampleStride);
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
  const double likely_mass = std::exp(look.range.likely_highest - best) / kSampleStride;
  if (!look.needs_float64 || look.coarse_part == 0) {
    // The look then pays only if most panels are left out. No panel is left out whose mass is above
    // `part` of all. Counting such panels takes no exponentials. kRounding is more than those of
    // the masses below.
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
  // query. The larger mass of these two cases is assumed. The sample is 1 / kSampleStride of the
  // store, so it gets that part of the one row's mass.
  mass = std::max(mass, likely_mass);
  const MassChoice choice = ChooseByMass(masses, 1, mass, part, look.coarse_part);
  return Saves(look, choice, masses, std::ssize(masses));
}

void PanelLook::ChooseByMassOf(const RoundLooks::Tile& tile, int number) {
  const ScanPlan& plan = tile.queries.plan();
  Look& look = looks_[tile.begin + number];
  const absl::Span<const float> bounds = BoundsOf(look);
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
    KeepFirstRows(look);
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
  // Skipping blocks saves enough time by itself, however many panels of the other blocks remain.
  look.continues = look.skips() || Saves(look, choice, bounds, look.panel_count);
}

void PanelLook::KeepFirstRows(Look& look) {
  if (look.goal.first_rows == 0) return;
  const absl::Span<float> bounds = BoundsOf(look);
  VisitFirstRows(look.goal.first_rows, looks_.BlocksOf(look, 0, blocks_.count()),
                 looks_.QueryOf(look), [&](std::size_t block, std::int64_t panel) {
                   const std::int64_t place =
                       look.skips() ? look.places[block] : static_cast<std::int64_t>(block);
                   bounds[static_cast<std::size_t>(place * blocks_.panels_max() + panel)] =
                       static_cast<float>(kInfiniteLogit);
                 });
}

void PanelLook::FindKeptBlocks(Look& look) {
  Candidates& candidates = look.candidates;
  std::vector<std::int32_t> kept;
  kernels::FindGroupsFrom(BoundsOf(look), candidates.block_stride, candidates.cut, kept);
  for (const std::int32_t place : kept) candidates.kept_blocks.Add(BlockAt(look, place));
}

PanelLogits PanelLook::BestPanel(const ScanPlan& plan, const Look& look,
                                 absl::Span<const float> bounds) const {
  // A sketched panel has an infinite bound if its mass is beyond float32. Its mass is then above
  // all finite ones. Trying a few of these panels is enough.
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
