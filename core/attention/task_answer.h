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
#include "core/attention/partial_state.h"
#include "core/attention/top_rows.h"
#include "core/base/cancellation.h"
#include "core/kernels/sum_values.h"

namespace softlookup {

// What a pass has found of a lane so far.
struct LaneState {
  HeadQuery query;
  PartialState state;
  // A memory that is listed beside the collected rows.
  std::optional<CountedRow> unranked_memory;
};

// The answer to one task in the making: it says what is asked of each row, and makes of what was
// found what is answered. A *lane* is one query of one head; lanes are numbered head by head, so
// that neighbours share their part of the keys.
//
// Different lanes may be worked on by different threads at the same time.
class TaskAnswer {
 public:
  // Both must outlive it.
  TaskAnswer(const AttentionTask& task, const CancelToken& cancel);

  // Makes room for the answer. First. RESOURCE_EXHAUSTED if it would be too large.
  absl::Status Begin();

  const AttentionTask& task() const { return task_; }
  std::int64_t lane_count() const { return lane_count_; }
  std::int64_t HeadOf(std::int64_t lane) const { return lane / task_.query_count(); }
  // False if only the best rows are wanted: they are found first and weighed at the end.
  bool sums_values() const { return sums_values_; }
  std::int64_t head_value_dim() const { return head_value_dim_; }
  // Memory that a lane's best rows take, at most, before they are weighed. With ALL they are the
  // answer, whose bytes are bounded.
  std::int64_t CollectorBytes() const;
  ScanPlan PlanOf(std::int64_t lane);

  // The lane as it is before the first row. `sums`, as many zeros as PaddedValueDim, is its
  // weighted sum of values. The query's collectors are made in `collectors`.
  LaneState BeginLane(std::int64_t lane, std::deque<TopRows>& collectors, double* sums) const;

  // Counts what the weights that a lane lists will take. Not thread-safe.
  void CountListed(const LaneState& lane);
  // Puts what was found of a lane into the answer, unless that has become too large.
  void FinishLane(std::int64_t lane, const LaneState& found, const double* sums);

  // False once the task is cancelled: the rest of its lanes may be left out.
  bool Continues();
  // Once, last.
  absl::StatusOr<AttentionAnswer> Take();

 private:
  void CountMemory(std::int64_t lane, LaneState& state, double* sums) const;
  // These return false if they were cancelled before the end.
  bool FinishSelected(std::int64_t lane, std::vector<CountedRow> rows);
  bool ListWeights(std::int64_t lane, const PartialState& state, std::vector<CountedRow> rows,
                   const std::vector<CountedRow>& others);
  // The least bytes that the answer takes without its listed weights.
  std::int64_t FixedBytes() const;
  absl::Status TooLarge() const;
  bool is_too_large() const { return bytes_ > task_.answer_bytes_max; }

  std::int64_t QueryOf(std::int64_t lane) const { return lane % task_.query_count(); }
  // Where the lane's results stand: query-major.
  std::int64_t ResultOf(std::int64_t lane) const {
    return QueryOf(lane) * task_.num_heads + HeadOf(lane);
  }
  float* ValuesOf(std::int64_t lane) {
    return answer_.values.data() + QueryOf(lane) * task_.value_dim + HeadOf(lane) * head_value_dim_;
  }
  bool IsMemory(std::uint64_t position) const {
    return task_.memory && task_.memory->position == position &&
           !(position >= task_.begin && position < task_.end);
  }
  // The weight of a row in LINEAR mode.
  double LinearWeight(const CountedRow& row) const {
    return IsMemory(row.position) ? row.logit * task_.memory->multiplicity : row.logit;
  }
  // Adds the weighted value of the row at `position`, this lane's head of it, to `sums`. `buffer`
  // has room for as many components.
  void AddValue(std::int64_t lane, std::uint64_t position, double weight, std::vector<double>& sums,
                std::vector<float>& buffer) const;

  const AttentionTask& task_;
  const CancelToken& cancel_;
  const std::int64_t head_key_dim_;
  const std::int64_t head_value_dim_;
  const std::int64_t lane_count_;
  // Only the top_k best rows count.
  const bool selects_rows_;
  const bool sums_values_;

  AttentionAnswer answer_;
  std::int64_t bytes_ = 0;  // Of the answer so far, at least.
  // With ALL: rows that may still be collected. An answer that needs more is refused anyway.
  std::atomic<std::int64_t> listed_rows_left_;
  std::atomic<bool> stopped_{false};
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_TASK_ANSWER_H_
