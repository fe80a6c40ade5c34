#include "core/attention/first_look.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "core/attention/error_budget.h"
#include "core/attention/look_goal.h"
#include "core/attention/precision_path.h"
#include "core/base/check.h"
#include "core/kernels/bound_search.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;
using kernels::kTileQueries;

// A task with fewer sketched blocks than this gets no first look. Scanning so few takes about as
// long as a look.
constexpr std::int64_t kSketchedBlocksMin = 4;
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

FirstLook::FirstLook(const AlignedBlocks& blocks, const HeadQueryOrder& order)
    : blocks_(blocks), order_(order), bounds_(std::exchange(SpareBounds(), {})) {}

FirstLook::~FirstLook() {
  if (bounds_.capacity() * sizeof(float) <= kSpareBytesMax) SpareBounds() = std::move(bounds_);
}

bool FirstLook::MayServe(const HeadQueries& queries) {
  if (!MayLeaveOut(queries.task(), queries.selects_rows())) return false;
  std::int64_t sketched = 0;
  for (const PositionedBlock& block : queries.task().blocks) {
    if (block.sketch != nullptr && ++sketched == kSketchedBlocksMin) return true;
  }
  return false;
}

void FirstLook::Begin(const std::vector<HeadQueryRef>& refs,
                      const std::vector<HeadQuery>& queries) {
  refs_ = &refs;
  queries_ = &queries;
  looks_.clear();
  tiles_.clear();
  look_of_.assign(refs.size(), -1);
  HeadQueries* of_task = nullptr;
  bool may_serve = false;
  SketchBounds sketches;
  std::int64_t panel_count = 0, tile_begin = 0;
  const auto end_tile = [&] {
    const auto end = static_cast<std::int64_t>(looks_.size());
    if (end > tile_begin) AddTile(tile_begin, end);
    tile_begin = end;
  };
  for (std::size_t q = 0; q < refs.size(); ++q) {
    const HeadQueryRef& ref = refs[q];
    if (&ref.answer->head_queries() != of_task) {
      of_task = &ref.answer->head_queries();
      may_serve = MayServe(*of_task);
      sketches = {};
      panel_count = 0;
      for (const PositionedBlock& block : of_task->task().blocks) {
        if (may_serve && block.sketch != nullptr) sketches.Add(*block.sketch);
        panel_count += block.view.panel_count();
      }
    }
    if (!may_serve || !kernels::KeysFitSketch(queries[q].magnitude)) continue;
    const ScanPlan plan = of_task->PlanOf(ref.number);
    const LogitRangeOfRows range = LogitRange(plan, queries[q], sketches.norm_max);
    // With larger bounds, the terms of a bound may leave float32's range.
    const double farthest = queries[q].norm + sketches.norm_max;
    if (!(range.highest < 1e30 && range.lowest > -1e30 && farthest * farthest < 1e30)) continue;
    const LookGoal goal = LookGoalOf(plan);
    if (!CanLeaveOut(plan.options, goal, range, of_task->task().row_count())) continue;
    if (static_cast<std::int64_t>(looks_.size()) - tile_begin == kTileQueries ||
        (tile_begin < static_cast<std::int64_t>(looks_.size()) &&
         !order_.ShareScan(refs[looks_.back().query], ref))) {
      end_tile();
    }
    look_of_[q] = static_cast<std::int64_t>(looks_.size());
    looks_.push_back({.query = q,
                      .goal = goal,
                      .panel_count = panel_count,
                      .sketches = sketches,
                      .range = range,
                      .highest = std::vector<double>(static_cast<std::size_t>(blocks_.count()),
                                                     kInfiniteLogit)});
  }
  end_tile();
}

std::vector<const PositionedBlock*> FirstLook::BlocksOf(std::int64_t look, std::int64_t begin,
                                                        std::int64_t end) const {
  std::vector<const PositionedBlock*> blocks;
  blocks.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t block = begin; block < end; ++block) blocks.push_back(BlockOf(look, block));
  return blocks;
}

void FirstLook::BoundBlocks(std::int64_t begin, std::int64_t end, std::int64_t tile_index) {
  const Tile& tile = tiles_[static_cast<std::size_t>(tile_index)];
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    Look& look = looks_[static_cast<std::size_t>(i)];
    if (!(*refs_)[look.query].answer->Continues()) continue;
    softlookup::BoundBlocks(tile.queries.plan(), (*queries_)[look.query], BlocksOf(i, begin, end),
                            look.highest.data() + begin);
  }
}

void FirstLook::ChooseBlocks(std::int64_t tile_index) {
  Tile& tile = tiles_[static_cast<std::size_t>(tile_index)];
  const ScanPlan& plan = tile.queries.plan();
  PanelBounder bounder;
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    Look& look = looks_[static_cast<std::size_t>(i)];
    if (!(*refs_)[look.query].answer->Continues()) continue;
    const std::vector<const PositionedBlock*> blocks = BlocksOf(i, 0, blocks_.count());
    VisitFirstRows(look.goal.first_rows, blocks, (*queries_)[look.query],
                   [&look](std::size_t block, std::int64_t /*panel*/) {
                     look.highest[block] = kInfiniteLogit;
                   });
    const int number = static_cast<int>(i - tile.begin);
    const auto panel_bounds = [&](const PositionedBlock& block) -> absl::Span<const float> {
      return {bounder.Bound(tile.queries, kernels::PanelBound::kLargest, block, number, number + 1),
              static_cast<std::size_t>(block.view.panel_count())};
    };
    look.blocks =
        softlookup::ChooseBlocks(plan, tile.queries.query(number), tile.queries.bounds(number),
                                 blocks, look.highest, look.goal, panel_bounds);
    if (!look.skips()) continue;
    look.places.assign(blocks.size(), -1);
    std::int32_t place = 0;
    for (const std::int32_t block : *look.blocks.read) {
      look.places[static_cast<std::size_t>(block)] = place++;
    }
    tile.queries.SetReference(number, std::min(look.blocks.largest_bound, look.range.highest));
  }
}

void FirstLook::BeginPanels() {
  std::vector<bool> is_read(static_cast<std::size_t>(blocks_.count()));
  std::size_t size = 0;
  for (Look& look : looks_) {
    look.bounds_begin = size;
    size += PanelCountOf(look);
    if (!look.skips()) {
      is_read.assign(is_read.size(), true);
      continue;
    }
    for (const std::int32_t block : *look.blocks.read) {
      is_read[static_cast<std::size_t>(block)] = true;
    }
  }
  read_blocks_.clear();
  for (std::int64_t block = 0; block < blocks_.count(); ++block) {
    if (is_read[static_cast<std::size_t>(block)]) read_blocks_.push_back(block);
  }
  // LookAt sets no bounds where the task has no block, or past a block's last panel. Those keep
  // their initial value: a mass of 0 here, or a largest logit of -inf below. Without clear(),
  // resize() would copy the bounds of the last round to larger memory.
  bounds_.clear();
  bounds_.resize(size);
  for (const Tile& tile : tiles_) {
    for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
      Look& look = looks_[static_cast<std::size_t>(i)];
      const absl::Span<float> bounds = BoundsOf(look);
      if (!look.goal.weighs_all) {
        std::ranges::fill(bounds, static_cast<float>(-kInfiniteLogit));
      }
      // kept_blocks begins as zeros. So a task that is cancelled before its candidates are chosen
      // keeps no block.
      look.candidates = {.bounds = bounds.data(),
                         .block_stride = blocks_.panels_max(),
                         .places = look.skips() ? look.places.data() : nullptr,
                         .kept_blocks = std::vector<std::uint64_t>(
                             static_cast<std::size_t>((blocks_.count() + 63) / 64))};
    }
  }
}

void FirstLook::AddTile(std::int64_t begin, std::int64_t end) {
  const HeadQueryRef& first = (*refs_)[looks_[static_cast<std::size_t>(begin)].query];
  const ScanPlan plan = first.answer->head_queries().PlanOf(first.number);
  std::vector<const HeadQuery*> queries;
  std::vector<SketchBounds> sketches;
  for (std::int64_t i = begin; i < end; ++i) {
    Look& look = looks_[static_cast<std::size_t>(i)];
    const HeadQuery& query = (*queries_)[look.query];
    queries.push_back(&query);
    sketches.push_back(look.sketches);
    // A sketch's norms are rounded to nearest, so a key's norm can be a little larger.
    const double norm_max = look.sketches.norm_max * (1 + 0x1p-20);
    look.coarse_part = CoarsePart(plan, look.goal, query, norm_max);
    look.needs_float64 = NeedsFloat64(plan, query, norm_max);
  }
  tiles_.push_back({.begin = begin, .queries = LookTile(plan, std::move(queries), sketches)});
}

void FirstLook::LookAt(Part part, std::int64_t begin, std::int64_t end, std::int64_t tile_begin,
                       std::int64_t tile_end) {
  const auto continues = [this](const Tile& tile) {
    for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
      const Look& look = looks_[static_cast<std::size_t>(i)];
      if (look.continues && (*refs_)[look.query].answer->Continues()) return true;
    }
    return false;
  };
  std::vector<const Tile*> tiles;
  for (std::int64_t t = tile_begin; t < tile_end; ++t) {
    const Tile& tile = tiles_[static_cast<std::size_t>(t)];
    if (continues(tile)) tiles.push_back(&tile);
  }
  PanelBounder bounder;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t block = read_blocks_[static_cast<std::size_t>(i)];
    for (const Tile* tile : tiles) LookAtBlock(part, *tile, block, bounder);
  }
}

void FirstLook::LookAtBlock(Part part, const Tile& tile, std::int64_t block_index,
                            PanelBounder& bounder) {
  // Masses need a reference, which is the largest bound of the sample. So the sample's own masses
  // are computed in Part::kRest. Either all looks of a tile weigh all rows, or none does.
  const bool looks_again =
      part == Part::kRest && looks_[static_cast<std::size_t>(tile.begin)].goal.weighs_all;
  const kernels::PanelBound form =
      looks_again ? kernels::PanelBound::kMass : kernels::PanelBound::kLargest;
  // Returns null if the look does not read the block in this part.
  const auto block_of = [&](std::int64_t i) -> const PositionedBlock* {
    const Look& look = looks_[static_cast<std::size_t>(i)];
    const PositionedBlock* block = BlockOf(i, block_index);
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
      Look& look = looks_[static_cast<std::size_t>(of)];
      const std::int64_t place =
          look.skips() ? look.places[static_cast<std::size_t>(block_index)] : block_index;
      std::copy_n(found, block->view.panel_count(),
                  bounds_.data() + look.bounds_begin + place * blocks_.panels_max());
    }
  }
}

void FirstLook::Choose(Part part, std::int64_t tile_index) {
  Tile& tile = tiles_[static_cast<std::size_t>(tile_index)];
  for (std::int64_t i = tile.begin; i < tile.end(); ++i) {
    const int number = static_cast<int>(i - tile.begin);
    Look& look = looks_[static_cast<std::size_t>(i)];
    if (!look.continues || !(*refs_)[look.query].answer->Continues()) continue;
    if (part == Part::kSample) {
      if (look.skips()) continue;
      const std::vector<float> sample = SampleOf(look);
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

bool FirstLook::Saves(const Look& look, const MassChoice& choice, absl::Span<const float> masses,
                      std::int64_t panel_count) {
  const auto panels = static_cast<double>(panel_count);
  if (static_cast<double>(choice.kept) <= KeptPartMax(look.goal) * panels) return true;
  if (!look.needs_float64 || look.coarse_part == 0) return false;
  const std::int64_t fine = kernels::CountBoundsFrom(masses, choice.fine_cut);
  return static_cast<double>(fine) <= kFinePartMax * panels;
}

std::vector<float> FirstLook::SampleOf(const Look& look) const {
  std::vector<float> sample;
  for (std::int64_t block_index = 0; block_index < blocks_.count(); ++block_index) {
    const PositionedBlock* block = blocks_.Of((*refs_)[look.query].task_index, block_index);
    if (block == nullptr || block->sketch == nullptr || !IsSampled(*block)) continue;
    const float* bounds = look.candidates.bounds_of(block_index);
    std::copy_if(bounds, bounds + block->view.panel_count(), std::back_inserter(sample),
                 [](float bound) { return bound < kInfiniteLogit; });
  }
  const auto is_none = [](float bound) { return bound == -kInfiniteLogit; };
  if (std::ranges::all_of(sample, is_none)) sample.clear();
  return sample;
}

bool FirstLook::SampleSavesMost(const Tile& tile, int number,
                                absl::Span<const float> sample) const {
  const ScanPlan& plan = tile.queries.plan();
  const Look& look = looks_[static_cast<std::size_t>(tile.begin + number)];
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
  // Estimates a panel's mass as that of one row with the logit of the panel's bound.
  const double best = *std::ranges::max_element(sample);
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
  mass = std::max(mass, std::exp(look.range.likely_highest - best) / kSampleStride);
  const MassChoice choice =
      ChooseByMass(masses, 1, mass, LookBudgetOf(plan.options).panels, look.coarse_part);
  return Saves(look, choice, masses, std::ssize(masses));
}

void FirstLook::ChooseByMassOf(const Tile& tile, int number) {
  const ScanPlan& plan = tile.queries.plan();
  Look& look = looks_[static_cast<std::size_t>(tile.begin + number)];
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

std::vector<std::int64_t> FirstLook::CandidateBlocks() const {
  Candidates of_any{.kept_blocks = std::vector<std::uint64_t>(
                        static_cast<std::size_t>(blocks_.count() + 63) / 64)};
  for (const Look& look : looks_) {
    if (!look.continues) continue;
    std::ranges::transform(of_any.kept_blocks, look.candidates.kept_blocks,
                           of_any.kept_blocks.begin(), std::bit_or());
  }
  std::vector<std::int64_t> blocks;
  std::ranges::copy_if(read_blocks_, std::back_inserter(blocks),
                       [&](std::int64_t block) { return of_any.KeepsBlock(block); });
  return blocks;
}

void FirstLook::Sort(absl::Span<const std::int64_t> order) {
  std::vector<std::int64_t> look_of;
  look_of.reserve(order.size());
  for (const std::int64_t query : order) {
    look_of.push_back(look_of_[static_cast<std::size_t>(query)]);
  }
  look_of_ = std::move(look_of);
  tiles_.clear();  // They refer to head queries in the old order.
}

void FirstLook::KeepFirstRows(Look& look) {
  if (look.goal.first_rows == 0) return;
  const auto index = static_cast<std::int64_t>(&look - looks_.data());
  const absl::Span<float> bounds = BoundsOf(look);
  VisitFirstRows(look.goal.first_rows, BlocksOf(index, 0, blocks_.count()), (*queries_)[look.query],
                 [&](std::size_t block, std::int64_t panel) {
                   const std::int64_t place =
                       look.skips() ? look.places[block] : static_cast<std::int64_t>(block);
                   bounds[static_cast<std::size_t>(place * blocks_.panels_max() + panel)] =
                       static_cast<float>(kInfiniteLogit);
                 });
}

void FirstLook::FindKeptBlocks(Look& look) {
  Candidates& candidates = look.candidates;
  std::vector<std::int32_t> kept;
  kernels::FindGroupsFrom(BoundsOf(look), candidates.block_stride, candidates.cut, kept);
  for (const std::int32_t place : kept) {
    const std::int64_t block = BlockAt(look, place);
    candidates.kept_blocks[static_cast<std::size_t>(block / 64)] |= std::uint64_t{1}
                                                                    << (block % 64);
  }
}

PanelLogits FirstLook::BestPanel(const ScanPlan& plan, const Look& look,
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
        LogitsOfPanel(plan, *RowsAt(look, at), (*queries_)[look.query], at % blocks_.panels_max());
    found.max = std::max(found.max, logits.max);
    found.log_sum_exp = std::max(found.log_sum_exp, logits.log_sum_exp);
  }
  return found;
}

const PositionedBlock* FirstLook::RowsAt(const Look& look, std::int64_t panel) const {
  const PositionedBlock* block =
      blocks_.Of((*refs_)[look.query].task_index, BlockAt(look, panel / blocks_.panels_max()));
  SOFTLOOKUP_CHECK(block != nullptr) << "bounds of panel " << panel;
  return block;
}

}  // namespace softlookup
