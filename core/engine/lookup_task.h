#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_TASK_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_TASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/base/matrix_view.h"
#include "core/engine/job_context.h"
#include "core/engine/ranking_budget.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"
#include "softlookup/row.h"

namespace softlookup {

// The attention task of one lookup. Holds what the task points to: the rows that the lookup selects
// in one snapshot of a store, a running memory, and queries that were projected from inputs. Does
// not own other queries.
class LookupTask {
 public:
  // `context` must outlive this object.
  explicit LookupTask(JobContext& context) : context_(context) {}
  LookupTask(const LookupTask&) = delete;
  LookupTask& operator=(const LookupTask&) = delete;

  // Checks `request`, selects the rows of `snapshot` that it attends to, and takes the bytes to
  // rank them (RankingBudget). Call this once, first. After an error, the task must not be
  // computed. The data of `request.queries` and `request.inputs` must live until the task is
  // computed.
  //
  // If `part` is set, selects only what is at its positions, and the answer is partial. A running
  // memory is at the position of the last row that it stands for.
  absl::Status Select(const LookupRequest& request, std::shared_ptr<const Snapshot> snapshot,
                      std::optional<PositionRange> part = std::nullopt);
  // Does the same, but takes no bytes to rank rows. The task must not be computed.
  absl::Status SelectWithoutRanking(const LookupRequest& request,
                                    std::shared_ptr<const Snapshot> snapshot,
                                    std::optional<PositionRange> part = std::nullopt);
  // Returns an upper bound on the cost of Select(), without the cost of its checks of the request.
  static double SelectCost(const LookupRequest& request, const Snapshot& snapshot,
                           std::optional<PositionRange> part);

  // Makes the task's queries from the request's inputs, if it has any.
  absl::Status ProjectInputs(const CancelToken& cancel);
  // Gives the bytes to rank rows back. Call this after the task is computed.
  void ReleaseRanking() { ranking_.reset(); }

  // Returns the task. If the request has inputs, the task has no queries before ProjectInputs().
  const AttentionTask& attention() const { return task_; }
  // Null until Select() has selected rows.
  const Snapshot* snapshot() const { return snapshot_.get(); }
  std::int64_t query_count() const { return inputs_ ? inputs_->rows : task_.query_count(); }
  // Returns the cost of ProjectInputs() and of the attention.
  double cost() const;

 private:
  // Sets task_.memory to memory `memory_index` as of the row at row.position.
  absl::Status TakeMemory(const MemoryRow& row, std::size_t memory_index);

  JobContext& context_;
  std::shared_ptr<const Snapshot> snapshot_;
  RowSelection selection_;
  std::optional<RankingBudget::Taken> ranking_;
  MemoryValue memory_;                // task_.memory points to it.
  std::optional<MatrixView> inputs_;  // [T, input_dim]
  std::vector<float> queries_;        // [T, key_dim]: the projected inputs.
  AttentionTask task_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_TASK_H_
