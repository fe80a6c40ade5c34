#ifndef SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
#define SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/attention/head_queries.h"
#include "core/attention/pass_task.h"
#include "core/base/cancellation.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Makes the answer to a task from what a pass has found for each of its head queries.
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

  // Adds the least bytes that the listed weights of a head query take to the size of the answer. If
  // that is then too large, Take() refuses the answer. Not thread-safe.
  void CountListed(const HeadQueryState& found);
  // Writes the results of a head query to the answer. Does nothing if the answer is too large or
  // the task is cancelled.
  void FinishHeadQuery(std::int64_t head_query, const HeadQueryState& found, const double* sums);

  // Returns the answer, or why there is none. Call this once, last.
  absl::StatusOr<AttentionAnswer> Take();

 private:
  // The next three functions stop early if the task is cancelled.
  void FinishPartial(std::int64_t head_query, const HeadQueryState& found, const double* sums);
  void FinishSelected(std::int64_t head_query, std::vector<CountedRow> rows);
  void ListWeights(std::int64_t head_query, const PartialState& state,
                   const std::vector<CountedRow>& rows, const std::vector<CountedRow>& others);
  // Returns the least bytes that the answer takes, without its listed weights.
  std::int64_t FixedBytes() const;
  absl::Status TooLarge() const;
  bool is_too_large() const { return bytes_ > task().answer_bytes_max; }

  const AttentionTask& task() const { return pass_task_.attention_task(); }
  const HeadQueries& head_queries() const { return pass_task_.head_queries(); }
  std::int64_t head_value_dim() const { return head_queries().head_value_dim(); }
  // Returns the index of a head query's results in the answer, which is query-major.
  std::size_t ResultOf(std::int64_t head_query) const {
    return static_cast<std::size_t>(head_queries().QueryOf(head_query) * task().num_heads +
                                    head_queries().HeadOf(head_query));
  }
  float* ValuesOf(std::int64_t head_query) {
    return answer_.values.data() + head_queries().QueryOf(head_query) * task().value_dim +
           head_queries().HeadOf(head_query) * head_value_dim();
  }
  // Returns true if the row at `position` is the running memory.
  bool IsMemory(std::uint64_t position) const {
    return task().memory && task().memory->position == position &&
           !(position >= task().begin && position < task().end);
  }
  // Returns the weight of a row in LINEAR mode.
  double LinearWeight(const CountedRow& row) const {
    return IsMemory(row.position) ? row.logit * task().memory->multiplicity : row.logit;
  }
  // Adds `weight` times the head's part of the value of the row at `position` to `sums`. `buffer`
  // is scratch space of head_value_dim() floats.
  void AddValue(std::int64_t head_query, std::uint64_t position, double weight,
                std::vector<double>& sums, std::vector<float>& buffer) const;

  PassTask pass_task_;
  AttentionAnswer answer_;
  std::int64_t bytes_ = 0;  // The least bytes of the answer, as known so far.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
