#include "core/attention/row_logits.h"

#include <limits>

#include "core/attention/precision_path.h"

namespace softlookup {
namespace {

kernels::ScoreForm FormOf(Score score) {
  switch (score) {
    case Score::kCosine:
      return kernels::ScoreForm::kCosine;
    case Score::kEuclidean:
      return kernels::ScoreForm::kNegativeRoot;
    case Score::kSquaredEuclidean:
      return kernels::ScoreForm::kNegative;
    case Score::kDot:
    case Score::kScaledDot:
    case Score::kUnspecified:
      break;
  }
  return kernels::ScoreForm::kScaled;
}

}  // namespace

kernels::RowRange RowsOf(const PositionedBlock& block, const HeadQuery& query) {
  const kernels::RowRange rows = {.begin = block.FirstRowFrom(query.begin),
                                  .end = block.FirstRowFrom(query.end)};
  return rows.begin < rows.end ? rows : kernels::RowRange{};
}

kernels::LogitParams LogitParamsOf(const ScanPlan& plan, const PositionedBlock& block,
                                   const HeadQuery& query) {
  return {.form = FormOf(plan.options.score),
          .scale = ScaleOf(plan),
          .query_norm = query.norm,
          .inverse_temperature = 1 / plan.options.temperature,
          .min_score = plan.options.min_score,
          .row_mask = block.row_mask,
          .ln_decay = plan.options.ln_decay,
          .age_of_row_0 =
              static_cast<double>(plan.age_end) - 1 - static_cast<double>(block.first_position)};
}

void CollectRows(const ScanPlan& plan, const PositionedBlock& block, kernels::RowRange rows,
                 double max_logit, const double* scores, const double* logits,
                 std::vector<CountedRow>& buffer, TopRows& collector) {
  const CountedRow best{.position = block.PositionOf(rows.begin), .logit = max_logit};
  if (!collector.Wants(best)) return;
  buffer.clear();
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    if (logits[r] == -kInfiniteLogit) continue;
    const CountedRow row{.position = block.PositionOf(r), .logit = logits[r], .score = scores[r]};
    if (collector.Wants(row)) buffer.push_back(row);
  }
  if (buffer.empty()) return;
  if (plan.collected_rows_left != nullptr &&
      plan.collected_rows_left->fetch_sub(static_cast<std::int64_t>(buffer.size())) <= 0) {
    return;
  }
  collector.Add(buffer);
}

std::int64_t FirstRowWith(double logit, const double* logits, kernels::RowRange rows) {
  std::int64_t r = rows.begin;
  while (logits[r] != logit) ++r;
  return r;
}

}  // namespace softlookup
