#ifndef SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERIES_H_
#define SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERIES_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/attention/attention_task.h"
#include "core/attention/block_scan.h"
#include "core/attention/top_rows.h"
#include "core/kernels/float32_sums.h"
#include "softlookup/partial_answer.h"

namespace softlookup {

// Returns the shape of the answer to `task`. If the task is a part of a larger one: of the whole
// answer.
AnswerShape ShapeOf(const AttentionTask& task);

// A head query, and what a pass has found for it so far.
struct HeadQueryState {
  HeadQuery query;
  PartialState state;
  // True if a first look chose the rows to scan, so that rows may have been left out.
  bool looked = false;
  // The running memory as a row. Set only in LINEAR mode without a top_k that selects rows. A
  // collector ranks rows by logit, but the memory's weight is a multiple of its logit. So the
  // memory is kept here instead.
  std::optional<CountedRow> unranked_memory;
};

// Cuts a task into its head queries, and makes the plan and the first state of each. Head queries
// are numbered head by head, so that neighbours read the same components of the keys.
//
// Several threads may work on different head queries at the same time.
class HeadQueries {
 public:
  // `task` must outlive this object. With weights ALL and no top_k that selects rows, scans stop
  // collecting once all head queries together have collected `collected_rows_max` rows.
  HeadQueries(const AttentionTask& task, std::int64_t collected_rows_max);

  const AttentionTask& task() const { return task_; }
  // Returns the summary of the task's blocks.
  const BlocksSummary& summary() const { return summary_; }
  std::int64_t count() const { return task_.query_count() * task_.num_heads; }
  std::int64_t HeadOf(std::int64_t head_query) const { return head_query / task_.query_count(); }
  std::int64_t QueryOf(std::int64_t head_query) const { return head_query % task_.query_count(); }
  // Returns ShapeOf(task()).
  const AnswerShape& shape() const { return shape_; }
  bool selects_rows() const { return shape_.selects_rows(); }
  // Returns false if the pass only finds the best rows (HARD mode, or a top_k that selects rows).
  // TaskAnswer then reads their values after the pass.
  bool sums_values() const { return sums_values_; }
  // Returns the mode by which the states of this task merge. It is HARD if the pass adds up no
  // values, because such states have no sums to merge.
  Mode merge_mode() const { return sums_values_ ? task_.options.mode : Mode::kHard; }
  std::int64_t head_value_dim() const { return head_value_dim_; }
  // Returns an upper bound on the bytes that the collectors of one head query take. A list of
  // weights ALL does not count if no top_k selects rows: the limit on the answer bounds it.
  std::int64_t CollectorBytes() const;
  // Returns the plan for scans of a head query. All queries of a head have the same plan.
  ScanPlan PlanOf(std::int64_t head_query);

  // Returns a head query without collectors: its components, the numbers that depend on them, and
  // its range of positions.
  HeadQuery Measure(std::int64_t head_query) const;
  // Returns the state of a head query before the first row is scanned. If the task has a running
  // memory that counts, the memory is merged into the state, and its weighted value into `sums`.
  // `measured` must come from Measure(). If sums_values(), `sums` must have head_value_dim() zeros.
  // Adds the query's collectors to `collectors`, which must outlive the state.
  HeadQueryState Begin(std::int64_t head_query, const HeadQuery& measured,
                       std::deque<TopRows>& collectors, double* sums) const;
  // Completes the state of a head query after a second look, which counted only the rows that it
  // scanned. Sets `looked`. Without a min_score, also sets counted_rows to the number of all rows
  // that may count, and adds exp(ln_left_out - max_logit) to left_out. `ln_left_out` must be that
  // of the query's Candidates.
  void CountLeftOut(double ln_left_out, HeadQueryState& found) const;

 private:
  void MergeMemory(std::int64_t head_query, HeadQueryState& begun, double* sums) const;

  const AttentionTask& task_;
  const BlocksSummary own_summary_;  // Empty if the task has one.
  const BlocksSummary& summary_;
  const std::int64_t head_key_dim_;
  const std::int64_t head_value_dim_;
  const kernels::Float32Roundings float32_roundings_;
  const AnswerShape shape_;
  const bool sums_values_;
  std::atomic<std::int64_t> collected_rows_left_;  // Used with weights ALL: see ScanPlan.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_HEAD_QUERIES_H_
