#ifndef SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
#define SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/attention/block_scan.h"
#include "core/attention/top_rows.h"
#include "core/base/cancellation.h"
#include "core/kernels/float32_sums.h"
#include "core/kernels/sum_values.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// A head query, and what a pass has found for it so far.
struct HeadQueryState {
  HeadQuery query;
  PartialState state;
  // Whether rows were left out after a first look.
  bool looked = false;
  // The running memory, if it is listed beside the collected rows.
  std::optional<CountedRow> unranked_memory;
};

// Builds the answer to one task. Gives a pass the plan and the first state of each head query, and
// turns the states that the pass has found into the answer. Head queries are numbered head by head,
// so that neighbours read the same components of the keys.
//
// Several threads may work on different head queries at the same time.
class TaskAnswer {
 public:
  // `task` and `cancel` must outlive this object.
  TaskAnswer(const AttentionTask& task, const CancelToken& cancel);

  // Makes room for the answer. Call this first. Returns RESOURCE_EXHAUSTED if the answer would be
  // too large.
  absl::Status Begin();

  const AttentionTask& task() const { return task_; }
  std::int64_t head_query_count() const { return head_query_count_; }
  std::int64_t HeadOf(std::int64_t head_query) const { return head_query / task_.query_count(); }
  // Returns true if the task has a top_k that can leave rows out.
  bool selects_rows() const { return selects_rows_; }
  // False if only the best rows are wanted: the answer weighs them once the pass has found them.
  bool sums_values() const { return sums_values_; }
  // How the states of this task merge: as HARD if no sums are wanted.
  Mode merge_mode() const { return sums_values_ ? task_.options.mode : Mode::kHard; }
  std::int64_t head_value_dim() const { return head_value_dim_; }
  // Returns an upper bound on the bytes of a head query's best rows before they are weighed. It is
  // 0 with weights ALL, unless top_k selects rows, because the limit on the answer bounds them.
  std::int64_t CollectorBytes() const;
  // Returns the plan for scans of a head query. All queries of a head have the same plan.
  ScanPlan PlanOf(std::int64_t head_query);

  // Returns the state of a head query before the first row is scanned, with the task's running
  // memory merged into it. `sums` must have head_value_dim() zeros if the task sums values. The
  // memory's weighted value is added to them. Adds the query's collectors to `collectors`, which
  // must outlive the state.
  HeadQueryState BeginHeadQuery(std::int64_t head_query, std::deque<TopRows>& collectors,
                                double* sums) const;

  // Adds the bytes of the weights that a head query lists to the answer's size. Not thread-safe.
  void CountListed(const HeadQueryState& found);
  // Completes the state of a head query after a second look: counts all rows that may count, and
  // adds the weight of those that were left out. With a min_score, nothing is missing.
  // `ln_left_out` is as in Candidates.
  void CountLeftOut(double ln_left_out, HeadQueryState& found) const;
  // Puts what was found into the answer, unless the answer is too large or the task is cancelled.
  void FinishHeadQuery(std::int64_t head_query, const HeadQueryState& found, const double* sums);

  // Returns false once the task is cancelled. The rest of its head queries may then be left out.
  bool Continues();
  // Returns the answer, or why there is none. Call this once, last.
  absl::StatusOr<AttentionAnswer> Take();

 private:
  void MergeMemory(std::int64_t head_query, HeadQueryState& begun, double* sums) const;
  // The next three functions return false if the task was cancelled before they ended.
  bool FinishPartial(std::int64_t head_query, const HeadQueryState& found, const double* sums);
  bool FinishSelected(std::int64_t head_query, std::vector<CountedRow> rows);
  bool ListWeights(std::int64_t head_query, const PartialState& state,
                   const std::vector<CountedRow>& rows, const std::vector<CountedRow>& others);
  // Returns the least bytes that the answer takes, without its listed weights.
  std::int64_t FixedBytes() const;
  absl::Status TooLarge() const;
  bool is_too_large() const { return bytes_ > task_.answer_bytes_max; }

  std::int64_t QueryOf(std::int64_t head_query) const { return head_query % task_.query_count(); }
  // Returns the index of a head query's results in the answer, which is query-major.
  std::size_t ResultOf(std::int64_t head_query) const {
    return static_cast<std::size_t>(QueryOf(head_query) * task_.num_heads + HeadOf(head_query));
  }
  float* ValuesOf(std::int64_t head_query) {
    return answer_.values.data() + QueryOf(head_query) * task_.value_dim +
           HeadOf(head_query) * head_value_dim_;
  }
  // Returns true if the row at `position` is the running memory.
  bool IsMemory(std::uint64_t position) const {
    return task_.memory && task_.memory->position == position &&
           !(position >= task_.begin && position < task_.end);
  }
  // Returns the weight of a row in LINEAR mode.
  double LinearWeight(const CountedRow& row) const {
    return IsMemory(row.position) ? row.logit * task_.memory->multiplicity : row.logit;
  }
  // Adds this head's part of the weighted value of the row at `position` to `sums`. `buffer` must
  // have room for as many components.
  void AddValue(std::int64_t head_query, std::uint64_t position, double weight,
                std::vector<double>& sums, std::vector<float>& buffer) const;

  const AttentionTask& task_;
  const CancelToken& cancel_;
  const std::int64_t head_key_dim_;
  const std::int64_t head_value_dim_;
  const std::int64_t head_query_count_;
  const kernels::Float32Roundings float32_roundings_;
  const bool selects_rows_;
  const bool sums_values_;

  AttentionAnswer answer_;
  std::int64_t bytes_ = 0;  // The least that the answer takes, as known so far.
  // With weights ALL, the number of rows that may still be collected. An answer that lists more is
  // refused.
  std::atomic<std::int64_t> listed_rows_left_;
  std::atomic<bool> cancelled_{false};  // Set once the task is found to be cancelled.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
