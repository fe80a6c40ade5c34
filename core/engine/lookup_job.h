#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/ranking_memory.h"
#include "core/scheduler/job_queue.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"

namespace softlookup {

// A lookup in one snapshot of a store.
class LookupJob final : public Job {
 public:
  // `context` and what `report` points to, if it is not null, must outlive the job.
  LookupJob(JobContext& context, std::shared_ptr<CancelToken> cancel, LookupReport* report,
            Engine::LookupCallback callback)
      : context_(context),
        cancel_(std::move(cancel)),
        report_(report),
        callback_(std::move(callback)) {}

  // Checks `request` and selects the rows of `snapshot` that it attends to. First. What
  // `request.queries` and `request.inputs` point to must live until the callback.
  absl::Status Select(const LookupRequest& request, std::shared_ptr<const Snapshot> snapshot);
  // What Select takes beside the checks of the request, at most.
  static double SelectCost(const LookupRequest& request, const Snapshot& snapshot);

  // The job as it is submitted, after Select. `store` is the number of the snapshot's store.
  static QueuedJob Queued(std::unique_ptr<LookupJob> job, std::uint64_t store);
  // The lookup waited and computed for so long before it was submitted.
  void AddTimes(const JobTimes& times);

  void Refuse(absl::Status status) override;
  absl::Status Prepare() override;
  const AttentionTask* task() const override { return &task_; }
  const CancelToken& cancel() const override { return *cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override;

 private:
  std::int64_t query_count() const { return inputs_ ? inputs_->rows : task_.query_count(); }
  double cost() const;
  void Report();
  LookupResult ResultOf(AttentionAnswer answer) const;

  JobContext& context_;
  const std::shared_ptr<CancelToken> cancel_;
  LookupReport* const report_;
  Engine::LookupCallback callback_;

  std::shared_ptr<const Snapshot> snapshot_;
  RowSelection selection_;
  std::optional<RankingMemory::Taken> ranking_;
  MemoryValue memory_;                // task_.memory points to it.
  std::optional<MatrixView> inputs_;  // [T, input_dim]: projected to queries by Prepare.
  std::vector<float> queries_;        // The projected ones.
  AttentionTask task_;
  JobTimes times_;  // Before it was submitted.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
