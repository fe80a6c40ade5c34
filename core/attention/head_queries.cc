#include "core/attention/head_queries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/error_budget.h"
#include "core/attention/row_logits.h"
#include "core/attention/score_pair.h"
#include "core/base/check.h"
#include "core/kernels/score_rows.h"

namespace softlookup {

AnswerShape ShapeOf(const AttentionTask& task) {
  const ResolvedOptions& options = task.options;
  AnswerShape shape{.query_count = task.query_count(),
                    .num_heads = task.num_heads,
                    .value_dim = task.value_dim,
                    .mode = options.mode,
                    .weights = options.weights,
                    .top_weights = options.weights == WeightsMode::kTop ? options.top_weights : 0,
                    .error_max = ErrorMax(options)};
  std::uint64_t row_count_max = task.end - task.begin;
  if (task.whole) {
    row_count_max = task.whole->end - task.whole->begin;
    shape.memory = task.whole->memory;
  } else if (task.memory) {
    shape.memory = {.position = task.memory->position, .multiplicity = task.memory->multiplicity};
  }
  if (shape.memory) ++row_count_max;
  if (options.top_k < row_count_max) shape.selected_max = options.top_k;
  return shape;
}

HeadQueries::HeadQueries(const AttentionTask& task, std::int64_t collected_rows_max)
    : task_(task),
      own_summary_(task.summary == nullptr ? SummaryOf(task.blocks) : BlocksSummary()),
      summary_(task.summary == nullptr ? own_summary_ : *task.summary),
      head_key_dim_(task.key_dim / task.num_heads),
      head_value_dim_(task.value_dim / task.num_heads),
      float32_roundings_(head_key_dim_, kernels::FusesMultiplyAdds()),
      shape_(ShapeOf(task)),
      sums_values_(!selects_rows() && task.options.mode != Mode::kHard),
      collected_rows_left_(collected_rows_max) {
  SOFTLOOKUP_CHECK(task.num_heads >= 1 && task.key_dim % task.num_heads == 0 &&
                   task.value_dim % task.num_heads == 0)
      << task.num_heads << " heads of " << task.key_dim << " and " << task.value_dim;
  SOFTLOOKUP_CHECK(task.queries.cols == task.key_dim)
      << "queries of " << task.queries.cols << " components, keys of " << task.key_dim;
  SOFTLOOKUP_CHECK(task.begin <= task.end) << "rows from " << task.begin << " to " << task.end;
  SOFTLOOKUP_CHECK(!task.whole || task.begin == task.end ||
                   (task.whole->begin <= task.begin && task.end <= task.whole->end))
      << "rows from " << task.begin << " to " << task.end << " beyond those of the whole task";
  SOFTLOOKUP_DCHECK(std::is_sorted(task.blocks.begin(), task.blocks.end(),
                                   [](const PositionedBlock& a, const PositionedBlock& b) {
                                     return a.first_position < b.first_position;
                                   }))
      << "blocks must be in the order of their positions";
}

std::int64_t HeadQueries::CollectorBytes() const {
  if (selects_rows()) return TopRows::BytesMax(static_cast<std::int64_t>(task_.options.top_k));
  if (task_.options.weights != WeightsMode::kTop) return 0;
  return 2 * TopRows::BytesMax(task_.options.top_weights);
}

ScanPlan HeadQueries::PlanOf(std::int64_t head_query) {
  const std::int64_t head = HeadOf(head_query);
  return {.options = task_.options,
          .head = head,
          .key_dims = {.begin = head * head_key_dim_, .count = head_key_dim_},
          .value_dims = {.begin = head * head_value_dim_, .count = head_value_dim_},
          .age_end = task_.age_end,
          .collected_rows_left = task_.options.weights == WeightsMode::kAll && !selects_rows()
                                     ? &collected_rows_left_
                                     : nullptr,
          .sum_values = sums_values_,
          .tiles = task_.tiles};
}

HeadQuery HeadQueries::Measure(std::int64_t head_query) const {
  const std::int64_t t = QueryOf(head_query);
  HeadQuery query{.components = task_.queries.row(t) + HeadOf(head_query) * head_key_dim_,
                  .begin = task_.begin,
                  .end = task_.end};
  double square = 0;
  for (std::int64_t i = 0; i < head_key_dim_; ++i) {
    const float component = query.components[i];
    query.magnitude = std::max(query.magnitude, std::abs(component));
    square += static_cast<double>(component) * component;
  }
  query.norm = std::sqrt(square);
  query.float32_errors = float32_roundings_.ErrorNormsOf(query.components);
  if (task_.options.causal) {
    const std::uint64_t offset_max = std::numeric_limits<std::uint64_t>::max() - t - 1;
    query.end = std::min(query.end, std::min(task_.options.causal_offset, offset_max) + t + 1);
    query.begin = std::min(query.begin, query.end);
  }
  return query;
}

HeadQueryState HeadQueries::Begin(std::int64_t head_query, const HeadQuery& measured,
                                  std::deque<TopRows>& collectors, double* sums) const {
  HeadQueryState begun{.query = measured};
  const ResolvedOptions& options = task_.options;
  HeadQuery& query = begun.query;
  SOFTLOOKUP_DCHECK(query.top_rows == nullptr && query.first_rows == nullptr)
      << "head query " << head_query << " has begun before";
  const bool lists = options.weights != WeightsMode::kNone;
  if (selects_rows()) {
    query.top_rows =
        &collectors.emplace_back(static_cast<std::int64_t>(options.top_k), RankBy::kLogit);
  } else if (options.weights == WeightsMode::kAll) {
    query.top_rows = &collectors.emplace_back(TopRows::kUnlimited, RankBy::kLogit);
  } else if (lists) {
    query.top_rows = &collectors.emplace_back(options.top_weights, OrderOfBestRows(shape_));
    // Many different logits can give the weight 0, and rows of equal weight are listed by position.
    // So the list can need the rows of the lowest positions.
    if (options.mode != Mode::kLinear) {
      query.first_rows = &collectors.emplace_back(options.top_weights, RankBy::kPosition);
    }
  }
  if (task_.memory) MergeMemory(head_query, begun, sums);
  return begun;
}

void HeadQueries::CountLeftOut(double ln_left_out, HeadQueryState& found) const {
  found.looked = true;
  PartialState& state = found.state;
  // With a min_score alone, the scan has counted every row that counts. With a min_score and top_k,
  // TaskAnswer counts the selected rows.
  if (task_.options.min_score > -std::numeric_limits<double>::infinity()) return;
  state.counted_rows = 0;
  if (summary_.IsWithin(found.query)) {
    state.counted_rows = static_cast<std::uint64_t>(summary_.counting_row_count);
  } else {
    for (const PositionedBlock& block : task_.blocks) {
      state.counted_rows += static_cast<std::uint64_t>(block.CountOf(RowsOf(block, found.query)));
    }
  }
  const double left_out = ln_left_out - state.max_logit;
  if (left_out > -std::numeric_limits<double>::infinity()) state.left_out += std::exp(left_out);
}

void HeadQueries::MergeMemory(std::int64_t head_query, HeadQueryState& begun, double* sums) const {
  const MemoryPair& memory = *task_.memory;
  const ResolvedOptions& options = task_.options;
  const HeadQuery& query = begun.query;
  const std::uint64_t t = static_cast<std::uint64_t>(QueryOf(head_query));
  if (options.causal && memory.position > t && memory.position - t > options.causal_offset) return;
  const double score = ScorePair(options.score, query.components,
                                 memory.key + HeadOf(head_query) * head_key_dim_, head_key_dim_);
  if (!(score >= options.min_score)) return;
  const double age = static_cast<double>(task_.age_end) - 1 - static_cast<double>(memory.position);
  double logit = score / options.temperature + age * options.ln_decay;
  if (options.mode != Mode::kLinear) logit += std::log(memory.multiplicity);
  PartialState state{.max_logit = logit,
                     .counted_rows = 1,
                     .max_position = memory.position,
                     .summed_rows = sums_values_ ? 1u : 0u};
  state.weight = options.mode == Mode::kLinear ? logit * memory.multiplicity : 1;
  std::vector<double> sum(sums_values_ ? head_value_dim_ : 0);
  if (sums_values_) {
    const double* value = memory.value + HeadOf(head_query) * head_value_dim_;
    for (std::int64_t i = 0; i < head_value_dim_; ++i) sum[i] = state.weight * value[i];
  }
  Merge(merge_mode(), state, sum, begun.state, {sums, sum.size()});
  const CountedRow row{.position = memory.position, .logit = logit, .score = score};
  if (options.mode == Mode::kLinear && !selects_rows()) {
    // The collector ranks by logit, but the memory's weight is `multiplicity` times its logit. So
    // the memory stays out of the collector, which could drop it.
    if (shape_.lists_rows()) begun.unranked_memory = row;
    return;
  }
  if (query.top_rows != nullptr) query.top_rows->Add({&row, 1});
  if (query.first_rows != nullptr) query.first_rows->Add({&row, 1});
}

}  // namespace softlookup
