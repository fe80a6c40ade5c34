#include "core/attention/task_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/error_budget.h"
#include "core/attention/listed_weight.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/kernels/panel_rows.h"

namespace softlookup {
namespace {

// The least bytes that a listed row takes on the wire: 8 each for weight and score, and 1 for the
// position as a varint.
constexpr std::int64_t kWeightBytesMin = 16 + 1;
// Rows that are weighed or sorted between two checks of the cancellation token. This is at most a
// few milliseconds' work.
constexpr std::size_t kRowsBetweenChecks = 1 << 15;

// Sorts the items. Stops and returns false once the task is cancelled.
template <typename T, typename Less>
bool SortInSteps(std::vector<T>& items, const Less& less, PassTask& task) {
  const auto at = [&](std::size_t index) {
    return items.begin() + static_cast<std::ptrdiff_t>(std::min(index, items.size()));
  };
  for (std::size_t i = 0; i < items.size(); i += kRowsBetweenChecks) {
    if (!task.Continues()) return false;
    std::sort(at(i), at(i + kRowsBetweenChecks), less);
  }
  for (std::size_t run = kRowsBetweenChecks; run < items.size(); run *= 2) {
    for (std::size_t i = 0; i < items.size(); i += 2 * run) {
      if (!task.Continues()) return false;
      std::inplace_merge(at(i), at(i + run), at(i + 2 * run), less);
    }
  }
  return true;
}

}  // namespace

TaskAnswer::TaskAnswer(const AttentionTask& task, const CancelToken& cancel)
    // An answer that lists more rows than fit is refused. To find that out, it is enough to collect
    // one row more than fits.
    : pass_task_(task, cancel, task.answer_bytes_max / kWeightBytesMin + 1) {}

absl::Status TaskAnswer::Begin() {
  bytes_ = FixedBytes();
  if (is_too_large()) return TooLarge();
  if (task().partial_base_position) {
    answer_.partials.resize(static_cast<std::size_t>(head_queries().count()));
    return absl::OkStatus();
  }
  answer_.values.resize(task().query_count() * task().value_dim);
  answer_.stats.resize(head_queries().count());
  if (task().options.weights != WeightsMode::kNone) answer_.weights.resize(head_queries().count());
  return absl::OkStatus();
}

void TaskAnswer::AddValue(std::int64_t head_query, std::uint64_t position, double weight,
                          std::vector<double>& sums, std::vector<float>& buffer) const {
  const std::int64_t offset = head_queries().HeadOf(head_query) * head_value_dim();
  if (IsMemory(position)) {
    const double* value = task().memory->value + offset;
    for (std::int64_t i = 0; i < head_value_dim(); ++i) sums[i] += weight * value[i];
    return;
  }
  const auto after = std::upper_bound(
      task().blocks.begin(), task().blocks.end(), position,
      [](std::uint64_t p, const PositionedBlock& block) { return p < block.first_position; });
  SOFTLOOKUP_CHECK(after != task().blocks.begin()) << "no block has position " << position;
  const PositionedBlock& block = *(after - 1);
  const std::int64_t row = block.FirstRowFrom(position);
  const float* value = kernels::ReadValue(
      block.view.shape, block.view.panel(row / kernels::kPanelRows), row % kernels::kPanelRows,
      {.begin = offset, .count = head_value_dim()}, buffer.data());
  for (std::int64_t i = 0; i < head_value_dim(); ++i) sums[i] += weight * value[i];
}

void TaskAnswer::CountListed(const HeadQueryState& found) {
  const ResolvedOptions& options = task().options;
  if (options.weights == WeightsMode::kNone) return;
  std::uint64_t listed = found.state.counted_rows;
  if (options.weights == WeightsMode::kTop) {
    listed = std::min(listed, static_cast<std::uint64_t>(options.top_weights));
  }
  if (head_queries().selects_rows()) listed = std::min(listed, options.top_k);
  bytes_ += static_cast<std::int64_t>(listed) * kWeightBytesMin;
}

void TaskAnswer::FinishHeadQuery(std::int64_t head_query, const HeadQueryState& found,
                                 const double* sums) {
  // An answer that is too large finishes no more head queries. CountListed still counts all of
  // them, because the error states the size.
  if (is_too_large() || !pass_task_.Continues()) return;
  const HeadQuery& query = found.query;
  if (task().partial_base_position) {
    FinishPartial(head_query, found, sums);
    return;
  }
  if (head_queries().selects_rows()) {
    FinishSelected(head_query, query.top_rows->Take());
    return;
  }
  const PartialState& state = found.state;
  const Mode mode = task().options.mode;
  if (mode == Mode::kHard && state.counted_rows > 0) {
    std::vector<double> value(head_value_dim());
    std::vector<float> buffer(head_value_dim());
    AddValue(head_query, state.max_position, 1, value, buffer);
    WriteValues(mode, state, value, ValuesOf(head_query));
  } else {
    WriteValues(mode, state, {sums, static_cast<std::size_t>(head_value_dim())},
                ValuesOf(head_query));
  }
  QueryStats& stats = answer_.stats[ResultOf(head_query)];
  stats = StatsOf(mode, state, ArithmeticError(task().options, found.looked));
  // StatsOf can return a little more than ErrorMax. It divides the weight left out by the weight of
  // the other rows. The budget is a part of the weight of all rows.
  stats.error_bound = std::min(stats.error_bound, ErrorMax(task().options));
  if (task().options.weights == WeightsMode::kNone) return;
  std::vector<CountedRow> others;
  if (query.first_rows != nullptr) others = query.first_rows->Take();
  if (found.unranked_memory) others.push_back(*found.unranked_memory);
  ListWeights(head_query, state, query.top_rows->Take(), others);
}

absl::StatusOr<AttentionAnswer> TaskAnswer::Take() {
  if (absl::Status status = pass_task_.status(); !status.ok()) return status;
  if (is_too_large()) return TooLarge();
  return std::move(answer_);
}

void TaskAnswer::FinishPartial(std::int64_t head_query, const HeadQueryState& found,
                               const double* sums) {
  PartialAnswer& partial = answer_.partials[ResultOf(head_query)];
  partial.base_position = *task().partial_base_position;
  partial.state = found.state;
  if (head_queries().merge_mode() != Mode::kHard) partial.sum.assign(sums, sums + head_value_dim());
  if (found.query.top_rows != nullptr) partial.best_rows = found.query.top_rows->Take();
  if (found.unranked_memory) partial.best_rows.push_back(*found.unranked_memory);
  SortInSteps(partial.best_rows, RanksBefore, pass_task_);
}

// Weighs the rows that top_k selected, in float64 and in the order of their logits, and adds up
// their values.
void TaskAnswer::FinishSelected(std::int64_t head_query, std::vector<CountedRow> rows) {
  const Mode mode = task().options.mode;
  if (!SortInSteps(rows, RanksBefore, pass_task_)) return;
  PartialState state{.counted_rows = rows.size(), .summed_rows = rows.size()};
  std::vector<double> sums(head_value_dim(), 0.0);
  std::vector<float> buffer(head_value_dim());
  if (!rows.empty()) {
    state.max_logit = rows.front().logit;
    state.max_position = rows.front().position;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenChecks == 0 && !pass_task_.Continues()) return;
    const CountedRow& row = rows[i];
    const double shifted = row.logit - state.max_logit;
    const double weight = mode == Mode::kLinear ? LinearWeight(row)
                          : mode == Mode::kHard ? (row.position == state.max_position ? 1.0 : 0.0)
                                                : std::exp(shifted);
    state.weight += weight;
    if (mode == Mode::kSoft && weight > 0) state.weighted += weight * shifted;
    AddValue(head_query, row.position, weight, sums, buffer);
  }
  WriteValues(mode, state, sums, ValuesOf(head_query));
  answer_.stats[ResultOf(head_query)] = StatsOf(mode, state);
  if (task().options.weights != WeightsMode::kNone) ListWeights(head_query, state, rows, {});
}

// Lists the weights of `rows`, the best rows, and of `others`. In LINEAR mode, `others` has the
// running memory or nothing. In other modes, it has the rows of the lowest positions if the list
// may need them: it orders rows of weight 0 by position. A row that is in both is listed once.
void TaskAnswer::ListWeights(std::int64_t head_query, const PartialState& state,
                             const std::vector<CountedRow>& rows,
                             const std::vector<CountedRow>& others) {
  const Mode mode = task().options.mode;
  const double ln_weight = mode == Mode::kSoft ? std::log(state.weight) : 0;
  const auto weigh = [&](const CountedRow& row) {
    const double weight = mode == Mode::kLinear ? LinearWeight(row)
                          : mode == Mode::kHard
                              ? (row.position == state.max_position ? 1.0 : 0.0)
                              : ListedWeight(row.logit, state.max_logit, ln_weight);
    return WeightedRow{.position = row.position, .weight = weight, .score = row.score};
  };
  QueryWeights& weights = answer_.weights[ResultOf(head_query)];
  weights.rows.reserve(rows.size() + others.size());
  for (const CountedRow& row : rows) weights.rows.push_back(weigh(row));
  for (const CountedRow& row : others) weights.rows.push_back(weigh(row));
  const auto comes_first = [](const WeightedRow& a, const WeightedRow& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  };
  if (!SortInSteps(weights.rows, comes_first, pass_task_)) return;
  const auto same_row = [](const auto& a, const auto& b) { return a.position == b.position; };
  weights.rows.erase(std::unique(weights.rows.begin(), weights.rows.end(), same_row),
                     weights.rows.end());
  if (task().options.weights == WeightsMode::kTop) {
    weights.rows.resize(std::min<std::size_t>(weights.rows.size(), task().options.top_weights));
  }
  if (weights.rows.size() == state.counted_rows) return;  // No weight remains.
  double listed = 0;
  for (const WeightedRow& row : weights.rows) listed += row.weight;
  const double total = mode == Mode::kLinear ? state.weight : 1;
  weights.remaining_weight = mode == Mode::kLinear ? total - listed : std::max(0.0, total - listed);
}

std::int64_t TaskAnswer::FixedBytes() const {
  // The bytes of a message's tag and length, and of log_sum_exp and max_logit, which a message has
  // unless they are 0.
  constexpr std::int64_t kStatsBytes = 2 + 2 * 9;
  constexpr std::int64_t kListBytes = 2;
  const bool lists = task().options.weights != WeightsMode::kNone;
  return task().query_count() * task().value_dim * 4 +
         head_queries().count() * (kStatsBytes + (lists ? kListBytes : 0));
}

absl::Status TaskAnswer::TooLarge() const {
  return MakeError(
      reasons::kAnswerTooLarge,
      absl::StrCat("The answer would need at least ", bytes_, " bytes; the limit is ",
                   task().answer_bytes_max, ". Ask for fewer queries or fewer weights"),
      {{"bytes", absl::StrCat(bytes_)}, {"limit", absl::StrCat(task().answer_bytes_max)}});
}

}  // namespace softlookup
