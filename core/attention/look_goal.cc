#include "core/attention/look_goal.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/attention/error_budget.h"
#include "core/attention/precision_path.h"
#include "core/attention/row_logits.h"
#include "core/kernels/panel.h"

namespace softlookup {
namespace {

// Larger than every bound on a logit: BeginLooks makes no look for head queries with larger ones.
constexpr double kBeyondBounds = 1e30;
// Hardly ever do more than this part of the rows have logits near the highest possible one.
constexpr double kBestPart = 1.0 / 16;

bool HasMinScore(const ResolvedOptions& options) { return options.min_score > -kInfiniteLogit; }

// The scan compares scores, not logits, with min_score. Dividing by the temperature rounds, so the
// threshold has a margin.
LogitThreshold ThresholdOf(const ResolvedOptions& options) {
  if (!HasMinScore(options)) return {};
  const double logit = options.min_score / options.temperature;
  const double within = std::clamp(logit, -kBeyondBounds, kBeyondBounds);
  return {.none_below = within - LogitRounding(within), .all_from = within + LogitRounding(within)};
}

}  // namespace

LookGoal LookGoalOf(const ScanPlan& plan) {
  const ResolvedOptions& options = plan.options;
  LookGoal goal{.weighs_all = plan.sum_values && !HasMinScore(options),
                .threshold = ThresholdOf(options),
                .sums_values = plan.sum_values};
  const bool is_hard = options.mode == Mode::kHard;
  const bool lists_best = options.weights == WeightsMode::kTop;
  if (goal.weighs_all) {
    goal.ranks = lists_best ? options.top_weights : 0;
  } else if (plan.sum_values || (is_hard && options.top_k == 0)) {
    // Statistics state how many rows min_score lets count, so all of these are kept.
    goal.ranks = HasMinScore(options) ? LookGoal::kAllRanks : 1;
  } else {
    goal.ranks =
        static_cast<std::int64_t>(std::min<std::uint64_t>(options.top_k, LookGoal::kAllRanks));
  }
  // Lists need no first rows in two cases. With a min_score alone, all rows that count are kept
  // anyway. If top_k selects rows, the list has only the selected rows.
  if (lists_best && !HasMinScore(options) && (plan.sum_values || (is_hard && options.top_k == 0))) {
    goal.first_rows = options.top_weights;
  }
  return goal;
}

double KeptPartMax(const LookGoal& goal) {
  // If values are added up and rows are ranked, the second look scores all remaining panels in
  // float64, which is slow. So it pays only if fewer panels remain.
  constexpr double kKeptPartMax = 0.5;
  return goal.sums_values && goal.ranks > 0 ? kFinePartMax : kKeptPartMax;
}

void VisitFirstRows(std::int64_t count, absl::Span<const PositionedBlock* const> blocks,
                    const HeadQuery& query,
                    absl::FunctionRef<void(std::size_t b, std::int64_t panel)> visit) {
  for (std::size_t b = 0; b < blocks.size() && count > 0; ++b) {
    if (blocks[b] == nullptr) continue;
    const kernels::RowRange rows = RowsOf(*blocks[b], query);
    if (rows.begin == rows.end) continue;
    const kernels::PanelRange panels = PanelsOf(rows);
    for (std::int64_t panel = panels.begin; panel < panels.end && count > 0; ++panel) {
      const std::int64_t found =
          blocks[b]->CountOf({.begin = std::max(rows.begin, panel * kernels::kPanelRows),
                              .end = std::min(rows.end, (panel + 1) * kernels::kPanelRows)});
      if (found > 0) visit(b, panel);
      count -= found;
    }
  }
}

double CoarsePart(const ScanPlan& plan, const LookGoal& goal, const HeadQuery& query,
                  double norm_max) {
  if (goal.ranks > 0) return 0;  // The logits of ranked rows have to be exact.
  // If a block is scanned whole, its panels below the cut may be scored in the fastest arithmetic,
  // too. If errors of logits stay within kCoarseErrorMax, this moves an answer by less than leaving
  // these panels out would.
  constexpr double kCoarseErrorMax = 0.5;
  const double error = Float32LogitError(plan, query, norm_max, /*sums_index=*/0);
  if (!(error <= kCoarseErrorMax)) return 0;
  return LookBudgetOf(plan.options).coarse_logits / (2 * std::expm1(error));
}

bool MayLeaveOut(const AttentionTask& task, bool selects_rows) {
  const ResolvedOptions& options = task.options;
  // In LINEAR mode, every row has a weight. With a decay, ages would have to be bounded, too. The
  // bound on the error is relative to the largest value of a row, and a running memory's value can
  // be larger. This also holds for the parts of a task that do not have its memory.
  if (options.mode == Mode::kLinear || options.ln_decay != 0 || task.memory.has_value() ||
      (task.whole && task.whole->memory.has_value())) {
    return false;
  }
  return options.weights != WeightsMode::kAll || selects_rows || HasMinScore(options);
}

bool CanLeaveOut(const ResolvedOptions& options, const LookGoal& goal,
                 const LogitRangeOfRows& range, std::uint64_t row_count) {
  if (!goal.weighs_all) {
    return goal.ranks < LookGoal::kAllRanks || goal.threshold.none_below > range.lowest;
  }
  // LookBudget::panels is the part of all weight that may be left out. If one row has the highest
  // logit and all others have the lowest, these can be left out only if they fit that part. If they
  // do not, no look is made.
  const double ln_part = std::log(LookBudgetOf(options).panels);
  if (!(range.lowest < range.highest + ln_part - std::log(static_cast<double>(row_count)))) {
    return false;
  }
  // Most rows are likely to have logits near the middle of the range. For products, that is the
  // logit of a key at a right angle to the query. A look pays only if such rows can be left out
  // beside the best ones. Assume that kBestPart of the rows have the highest logit. Then row_count
  // rows of the middle logit have to weigh less than LookBudget::panels times the weight of
  // kBestPart * row_count rows of the highest logit.
  const double middle = std::midpoint(range.lowest, range.highest);
  return middle < range.highest + ln_part + std::log(kBestPart);
}

}  // namespace softlookup
