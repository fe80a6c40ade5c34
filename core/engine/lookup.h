#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/attend.h"
#include "core/base/cancellation.h"
#include "core/base/limits.h"
#include "core/engine/ranking_memory.h"
#include "core/parallel/fork_join_pool.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"

namespace softlookup {

// A lookup that is checked and whose snapshot is chosen: all that is left is work.
class PreparedLookup {
 public:
  // What `request` points to must live as long as this. `tiles` as in AttentionTask.
  static absl::StatusOr<std::unique_ptr<PreparedLookup>> Make(
      const LookupRequest& request, std::shared_ptr<const Snapshot> snapshot, const Limits& limits,
      std::optional<kernels::TileUnit> tiles);

  std::int64_t query_count() const { return inputs_ ? inputs_->rows : task_.query_count(); }
  // As AttentionTask::cost().
  double cost() const;
  // Makes the task whole: projects the queries, if they are given as inputs. First.
  absl::Status Begin(const CancelToken& cancel);
  const AttentionTask& task() const { return task_; }
  // The result that answers the task with `answer`. Last.
  LookupResult Finish(AttentionAnswer answer) const;

 private:
  PreparedLookup() = default;

  std::shared_ptr<const Snapshot> snapshot_;
  RowSelection selection_;
  MemoryValue memory_;                // That task_.memory points to.
  std::optional<MatrixView> inputs_;  // To be projected to queries first.
  std::vector<float> queries_;        // That were.
  AttentionTask task_;
};

// What Make costs beside the checks of the request, as AttentionTask::cost(): what looking at the
// labels and ids of rows takes, or reading a memory, at most about.
double PreparationCost(const LookupRequest& request, const Snapshot& snapshot);

// Attention over what a checked request carries. `tiles` as in AttentionTask.
absl::StatusOr<LookupResult> AttendToRequest(const AttendRequest& request, const Limits& limits,
                                             std::optional<kernels::TileUnit> tiles,
                                             RankingMemory& ranking, ForkJoinPool& pool,
                                             const CancelToken& cancel);

// Which of a store's memories has this name (empty: average), as Snapshot::MemoryAsOf numbers them.
// MEMORY_NOT_FOUND.
absl::StatusOr<std::size_t> FindMemory(const StoreConfig& config, absl::string_view name);
// The other way round.
absl::string_view MemoryNameOf(const StoreConfig& config, std::size_t index);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_H_
