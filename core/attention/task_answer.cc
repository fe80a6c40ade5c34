#include "core/attention/task_answer.h"

#include <algorithm>
#include <utility>

#include "core/attention/error_budget.h"

namespace softlookup {
namespace {

// Takes the rows that the head query's collectors have kept.
RankedRows TakeRows(const HeadQueryState& found) {
  RankedRows rows{.unranked_memory = found.unranked_memory};
  if (found.query.top_rows != nullptr) rows.best = found.query.top_rows->Take();
  if (found.query.first_rows != nullptr) rows.first = found.query.first_rows->Take();
  return rows;
}

}  // namespace

TaskAnswer::TaskAnswer(const AttentionTask& task, const CancelToken& cancel)
    // An answer that lists more rows than fit is refused. To find that out, it is enough to collect
    // one row more than fits.
    : pass_task_(task, cancel, task.answer_bytes_max / AnswerWriter::kListedRowBytesMin + 1),
      values_(task),
      writer_(shape(), task.answer_bytes_max) {}

absl::Status TaskAnswer::Begin() {
  if (writer_.is_too_large()) return writer_.CheckSize();
  if (task().whole) {
    writer_.answer().partials.resize(static_cast<std::size_t>(head_queries().count()));
  } else {
    writer_.Begin();
  }
  return absl::OkStatus();
}

void TaskAnswer::CountListed(const HeadQueryState& found) {
  if (task().whole && shape().selects_rows()) {
    const std::uint64_t selected = std::min(found.state.counted_rows, shape().selected_max);
    writer_.CountBytes(static_cast<std::int64_t>(selected * sizeof(CountedRow)));
  } else {
    writer_.CountListed(found.state.counted_rows);
  }
}

void TaskAnswer::FinishHeadQuery(std::int64_t head_query, const HeadQueryState& found,
                                 const double* sums) {
  const auto continues = [this] { return pass_task_.Continues(); };
  // An answer that is too large finishes no more head queries. CountListed still counts all of
  // them, because the error states the size.
  if (writer_.is_too_large() || !continues()) return;
  const std::int64_t head = head_queries().HeadOf(head_query);
  const std::size_t result = ResultOf(head_query);
  RankedRows rows = TakeRows(found);
  if (shape().selects_rows() && !task().whole) {
    SelectedRows selected = WeighSelected(shape(), std::move(rows.best), continues);
    writer_.WriteSums(result, selected.state, values_.SumOf(head, selected.weighed, continues),
                      kErrorBoundDefault);
    writer_.ListWeights(result, selected.state, {.best = std::move(selected.rows)}, continues);
    return;
  }
  const PartialState& state = found.state;
  std::vector<double> best_value;
  absl::Span<const double> sum;
  if (head_queries().sums_values()) {
    sum = {sums, static_cast<std::size_t>(shape().head_value_dim())};
  } else if (!shape().selects_rows() && state.counted_rows > 0) {
    // In HARD mode, the answer is the value of the best row.
    const WeighedRow best{.position = state.max_position, .weight = 1};
    best_value = values_.SumOf(head, {&best, 1}, continues);
    sum = best_value;
  }
  const double arithmetic_error = ArithmeticError(task().options, found.looked);
  if (task().whole) {
    FinishPartial(result, state, sum, arithmetic_error, std::move(rows));
  } else {
    writer_.WriteSums(result, state, sum, arithmetic_error);
    writer_.ListWeights(result, state, std::move(rows), continues);
  }
}

absl::StatusOr<AttentionAnswer> TaskAnswer::Take() {
  if (absl::Status status = pass_task_.status(); !status.ok()) return status;
  if (writer_.is_too_large()) return writer_.CheckSize();
  return std::move(writer_.answer());
}

void TaskAnswer::FinishPartial(std::size_t result, const PartialState& state,
                               absl::Span<const double> sum, double arithmetic_error,
                               RankedRows rows) {
  const auto continues = [this] { return pass_task_.Continues(); };
  PartialAnswer& partial = writer_.answer().partials[result];
  partial.rows = std::move(rows);
  SortRows(OrderOfBestRows(shape()), partial.rows.best, continues);
  SortRows(RankBy::kPosition, partial.rows.first, continues);
  if (shape().selects_rows() || state.counted_rows == 0) return;
  partial.state = state;
  partial.sum.assign(sum.begin(), sum.end());
  if (shape().mode == Mode::kSoft) partial.arithmetic_error = arithmetic_error;
}

}  // namespace softlookup
