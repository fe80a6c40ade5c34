#include "core/attention/block_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "core/attention/error_budget.h"
#include "core/attention/look_tile.h"
#include "core/attention/panel_choice.h"
#include "core/attention/row_logits.h"
#include "core/kernels/key_ball.h"

namespace softlookup {
namespace {

// A few blocks are read to find out which others can be skipped: one for each kBlocksPerTry of the
// query's blocks, but at least one and at most kTriesMax.
constexpr std::int64_t kBlocksPerTry = 64;
constexpr std::int64_t kTriesMax = 4;
// The blocks to read first are chosen among the kNearMax blocks of the largest bounds.
constexpr std::size_t kNearMax = 16;
// If more than this part of the blocks has to be read, none is skipped.
constexpr double kReadPartMax = 0.5;
// The part of LookBudget::panels that skipped blocks may use.
constexpr double kBudgetPart = 0.125;

// A block whose rows may have large logits.
struct NearBlock {
  std::size_t block = 0;
  double likely = 0;  // A logit that its best row is likely to reach.
};

// Returns a logit that the block's best row is likely to reach. Takes the larger of the logits of
// its two balls. A ball's logit is half way between that of its centre and the highest in the ball.
// The highest alone would favour wide balls. They reach near to the query, but their rows are
// likely to be elsewhere.
double LikelyIn(const ScanPlan& plan, const HeadQuery& query, const PositionedBlock& block) {
  const BallBounds bounds(plan, query);
  double likely = -kInfiniteLogit;
  for (kernels::KeyBall ball : block.sketch->balls) {
    const kernels::KeyBall* const pointer = &ball;
    float product = 0;
    kernels::CentreProducts(query.components, plan.key_dims.count, {&pointer, 1}, &product);
    const double highest = bounds.HighestIn(ball, product);
    ball.radius = 0;
    likely = std::max(likely, (highest + bounds.HighestIn(ball, product)) / 2);
  }
  return likely;
}

// Takes the blocks that IsSketched holds for and whose bounds are finite. Returns the kNearMax of
// them that have the largest bounds, or all if there are fewer. Sorts these by the logit that their
// best row is likely to reach, largest first. refine() is as in ChooseBlocks.
std::vector<NearBlock> NearestBlocks(const ScanPlan& plan, const HeadQuery& query,
                                     absl::Span<const PositionedBlock* const> blocks,
                                     absl::Span<const double> highest,
                                     absl::FunctionRef<bool(double cut)> refine) {
  // The bound of a group can be far above those of its blocks. So the blocks of the kNearGroups
  // groups of the largest bounds are taken first, and then bounded one by one.
  constexpr std::size_t kNearGroups = 4;
  constexpr std::size_t kTakenMax = kNearGroups * kernels::kBallGroupBlocks;
  static_assert(kTakenMax >= kNearMax);
  std::vector<std::size_t> best;  // The largest bound first. Of equal bounds, the first block's.
  const auto bound_of = [highest](std::size_t b) { return highest[b]; };
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const double bound = highest[b];
    if (!(std::abs(bound) < kInfiniteLogit)) continue;
    if (best.size() == kTakenMax && bound <= highest[best.back()]) continue;
    if (!IsSketched(*blocks[b], query)) continue;
    if (best.size() == kTakenMax) best.pop_back();
    best.insert(std::ranges::upper_bound(best, bound, std::ranges::greater(), bound_of), b);
  }
  if (!best.empty() && refine(highest[best.back()])) {
    std::ranges::stable_sort(best, std::ranges::greater(), bound_of);
  }
  best.resize(std::min(best.size(), kNearMax));
  std::vector<NearBlock> nearest;
  nearest.reserve(best.size());
  for (const std::size_t b : best) {
    nearest.push_back({.block = b, .likely = LikelyIn(plan, query, *blocks[b])});
  }
  std::ranges::stable_sort(nearest, std::ranges::greater(), &NearBlock::likely);
  return nearest;
}

// Returns the largest finite bound in `highest`, or a little more. But for the roundings of
// CentreProducts, that is an upper bound on NearBlock::likely of all blocks. It is -inf if no bound
// is finite.
double LikelyMax(absl::Span<const double> highest) {
  // If a ball covers the query's direction, its bound on cosines has no margin for roundings. The
  // bound on its centre can have one. So LikelyIn can exceed a block's bound by about 2^-41 of it.
  constexpr double kRounding = 0x1p-38;
  double largest = -kInfiniteLogit;
  for (const double bound : highest) {
    if (std::abs(bound) < kInfiniteLogit) largest = std::max(largest, bound);
  }
  return largest > -kInfiniteLogit ? largest + std::abs(largest) * kRounding : largest;
}

// Returns how many of `bounds` are `cut` or more.
std::int64_t CountFrom(absl::Span<const double> bounds, double cut) {
  std::int64_t count = 0;
  for (const double bound : bounds) count += static_cast<std::int64_t>(bound >= cut);
  return count;
}

// Returns how far below the log-sum-exp the logits of all row_count rows must be, so that all of
// them together fit the budget of skipped blocks. Returns 0 if the answer does not weigh all rows.
double MarginOf(const ScanPlan& plan, const LookGoal& goal, std::int64_t row_count) {
  if (!goal.weighs_all) return 0;
  return std::log(static_cast<double>(row_count)) -
         std::log(LookBudgetOf(plan.options).panels * kBudgetPart);
}

}  // namespace

void BoundBlocks(const ScanPlan& plan, const HeadQuery& query,
                 absl::Span<const PositionedBlock* const> blocks, double* highest) {
  std::vector<const kernels::KeyBall*> balls;
  std::vector<std::size_t> known;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    highest[b] = -kInfiniteLogit;
    if (blocks[b] == nullptr) continue;
    const kernels::RowRange rows = RowsOf(*blocks[b], query);
    if (rows.begin == rows.end || blocks[b]->CountOf(rows) == 0) continue;
    if (blocks[b]->sketch == nullptr || !blocks[b]->sketch->has_balls()) {
      highest[b] = kInfiniteLogit;
      continue;
    }
    for (const kernels::KeyBall& ball : blocks[b]->sketch->balls) balls.push_back(&ball);
    known.push_back(b);
  }
  std::vector<float> products(balls.size());
  kernels::CentreProducts(query.components, plan.key_dims.count, balls, products.data());
  const BallBounds bounds(plan, query);
  for (std::size_t i = 0; i < balls.size(); ++i) {
    double& of_block = highest[known[i / kernels::kBlockBalls]];
    of_block = std::max(of_block, bounds.HighestIn(*balls[i], products[i]));
  }
}

void BoundGroups(const ScanPlan& plan, const HeadQuery& query,
                 absl::Span<const kernels::KeyBalls* const> groups, double* highest) {
  std::vector<const kernels::KeyBall*> balls;
  for (const kernels::KeyBalls* const group : groups) {
    if (group == nullptr) continue;
    for (const kernels::KeyBall& ball : *group) balls.push_back(&ball);
  }
  std::vector<float> products(balls.size());
  kernels::CentreProducts(query.components, plan.key_dims.count, balls, products.data());
  const BallBounds bounds(plan, query);
  std::size_t at = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] == nullptr) continue;
    double of_group = -kInfiniteLogit;
    for (const std::size_t end = at + kernels::kBlockBalls; at < end; ++at) {
      of_group = std::max(of_group, bounds.HighestIn(*balls[at], products[at]));
    }
    std::fill_n(highest + i * kernels::kBallGroupBlocks, kernels::kBallGroupBlocks, of_group);
  }
}

bool MaySkipBlocks(const ScanPlan& plan, const HeadQuery& query, const BallsRange& balls,
                   const LookGoal& goal, std::int64_t row_count) {
  if (goal.ranks == LookGoal::kAllRanks) return true;
  const BallBounds::Span span = BallBounds(plan, query).SpanOf(balls);
  // Every bound is at least span.lowest, and no row is likely to reach more than span.highest. So
  // if all bounds reach this cut, ChooseBlocks finds from the balls alone that it can skip nothing.
  const double cut =
      std::max(goal.threshold.none_below, span.highest - MarginOf(plan, goal, row_count));
  return span.lowest < cut;
}

BlockChoice ChooseBlocks(
    const ScanPlan& plan, const HeadQuery& query, const LogitBounds& bounds,
    absl::Span<const PositionedBlock* const> blocks, absl::Span<const double> highest,
    std::int64_t row_count, const LookGoal& goal, absl::FunctionRef<bool(double cut)> refine,
    absl::FunctionRef<absl::Span<const float>(const PositionedBlock& block)> panel_bounds) {
  BlockChoice choice;
  // Blocks without rows of the query are not counted: their bound is -inf. Only other tasks of the
  // pass may have rows there.
  const std::int64_t own_count = CountFrom(highest, std::numeric_limits<double>::lowest());
  const auto skips_enough = [&](double cut) {
    refine(cut);
    return static_cast<double>(CountFrom(highest, cut)) <=
           kReadPartMax * static_cast<double>(own_count);
  };
  const double margin = MarginOf(plan, goal, row_count);
  double cut = goal.threshold.none_below;
  // A higher cut skips more blocks. LikelyMax returns an upper bound on the `likely` of all blocks.
  // If the cut that follows from this bound skips too few, so does the lower cut that follows from
  // tries[0].likely below. NearestBlocks then need not be called.
  if (goal.ranks != LookGoal::kAllRanks &&
      !skips_enough(std::max(cut, LikelyMax(highest) - margin))) {
    return choice;
  }
  std::vector<NearBlock> tries = NearestBlocks(plan, query, blocks, highest, refine);
  if (tries.empty()) return choice;
  if (goal.ranks == LookGoal::kAllRanks) {
    tries.clear();  // min_score alone decides, so no block has to be read for the choice.
  } else {
    // If rows were appended in no order, the balls (key_ball.h) of all blocks are alike, and few
    // blocks can be skipped. The balls alone show this, so no block is read to find it out.
    if (!skips_enough(std::max(cut, tries[0].likely - margin))) return choice;
    const auto tries_max =
        static_cast<std::size_t>(std::clamp<std::int64_t>(own_count / kBlocksPerTry, 1, kTriesMax));
    tries.resize(std::min(tries.size(), tries_max));
  }
  choice.largest_bound = -kInfiniteLogit;
  bool skips = tries.empty() && skips_enough(cut);
  std::vector<float> tried;  // Bounds on the logits of the panels of all blocks tried so far.
  for (const NearBlock& near : tries) {
    const PositionedBlock& block = *blocks[near.block];
    const absl::Span<const float> panels = panel_bounds(block);
    const auto largest = std::ranges::max_element(panels);
    choice.largest_bound = std::max<double>(choice.largest_bound, *largest);
    if (goal.ranks > 0) {
      tried.insert(tried.end(), panels.begin(), panels.end());
      const auto lower_of = [&](double upper) { return bounds.LowerOf(upper); };
      cut = ChooseByRank(tried, lower_of, goal.ranks, goal.threshold).cut;
    }
    if (goal.weighs_all) {
      const PanelLogits logits = LogitsOfPanel(plan, block, query, largest - panels.begin());
      choice.best.max = std::max(choice.best.max, logits.max);
      choice.best.log_sum_exp = std::max(choice.best.log_sum_exp, logits.log_sum_exp);
      // The answer states the largest logit, so no block that may have it is skipped.
      const double weighty = std::min(choice.best.max, choice.best.log_sum_exp - margin) -
                             LogitRounding(choice.best.max);
      cut = goal.ranks > 0 ? std::min(cut, weighty) : weighty;
    }
    skips = skips_enough(cut);
    if (skips) break;
  }
  if (!skips) return choice;
  choice.read.emplace();
  std::int64_t skipped_rows = row_count;
  double most = -kInfiniteLogit;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (highest[b] >= cut) {
      choice.read->push_back(static_cast<std::int32_t>(b));
      skipped_rows -= blocks[b]->view.row_count;
    } else if (highest[b] > -kInfiniteLogit) {
      most = std::max(most, highest[b]);
    } else if (blocks[b] != nullptr) {
      skipped_rows -= blocks[b]->view.row_count;  // The query does not attend to them.
    }
  }
  if (skipped_rows > 0) choice.ln_left_out = most + std::log(static_cast<double>(skipped_rows));
  return choice;
}

}  // namespace softlookup
