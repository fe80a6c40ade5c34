#ifndef SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
#define SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/answer_writer.h"
#include "core/attention/attention_task.h"
#include "core/attention/head_queries.h"
#include "core/attention/pass_task.h"
#include "core/attention/row_values.h"
#include "core/base/cancellation.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Makes the answer to a task from what a pass has found for each of its head queries. The answer to
// a part of a larger task is partial. The answer to any other task is made as if of one partial
// answer, which has all rows.
//
// Several threads may call FinishHeadQuery for different head queries at the same time.
class TaskAnswer {
 public:
  // `task` and `cancel` must outlive this object.
  TaskAnswer(const AttentionTask& task, const CancelToken& cancel);

  // Makes room for the answer. Call this first. Returns RESOURCE_EXHAUSTED if the answer is too
  // large even without its listed weights.
  absl::Status Begin();

  // Returns the task as the pass knows it.
  PassTask& pass_task() { return pass_task_; }

  // Adds the least bytes that the rows of a head query take, listed or in a partial answer, to the
  // size of the answer. If that is then too large, Take() refuses the answer. Not thread-safe.
  void CountListed(const HeadQueryState& found);
  // Writes the results of a head query to the answer. Does nothing if the answer is too large or
  // the task is cancelled.
  void FinishHeadQuery(std::int64_t head_query, const HeadQueryState& found, const double* sums);

  // Returns the answer, or why there is none. Call this once, last.
  absl::StatusOr<AttentionAnswer> Take();

 private:
  // Sets the partial answer of a head query. `sum` is as in PartialAnswer.
  void FinishPartial(std::size_t result, const PartialState& state, absl::Span<const double> sum,
                     double arithmetic_error, RankedRows rows);

  const AttentionTask& task() const { return pass_task_.attention_task(); }
  const HeadQueries& head_queries() const { return pass_task_.head_queries(); }
  const AnswerShape& shape() const { return head_queries().shape(); }
  // Returns the index of a head query's results in the answer, which is query-major.
  std::size_t ResultOf(std::int64_t head_query) const {
    return static_cast<std::size_t>(head_queries().QueryOf(head_query) * task().num_heads +
                                    head_queries().HeadOf(head_query));
  }

  PassTask pass_task_;
  const RowValues values_;
  AnswerWriter writer_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
