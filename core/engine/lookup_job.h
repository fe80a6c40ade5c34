#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/ranking_budget.h"
#include "core/scheduler/job_queue.h"
#include "core/store/row_selection.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"

namespace softlookup {

// A lookup in one snapshot of a store.
class LookupJob final : public Job {
 public:
  // `context` and `*report` must outlive the job. `report` may be null.
  LookupJob(JobContext& context, std::shared_ptr<CancelToken> cancel, LookupReport* report,
            Engine::LookupCallback callback)
      : context_(context),
        cancel_(std::move(cancel)),
        report_(report),
        callback_(std::move(callback)) {}

  // Checks `request`, selects the rows of `snapshot` that it attends to, and takes the bytes to
  // rank them (RankingBudget). Call this first. After an error, refuse the job instead of
  // submitting it. The data of `request.queries` and `request.inputs` must live until the callback.
  absl::Status Select(const LookupRequest& request, std::shared_ptr<const Snapshot> snapshot);
  // Returns an upper bound on the cost of Select(), without the cost of its checks of the request.
  static double SelectCost(const LookupRequest& request, const Snapshot& snapshot);

  // Returns `job` as Scheduler::Submit takes it. Call this after Select(). `store` is the number of
  // the snapshot's store.
  static QueuedJob Queued(std::unique_ptr<LookupJob> job, std::uint64_t store);
  // Adds `times` to the waiting and computing times of the lookup's report and of the metrics. Call
  // this once the job that selected the lookup's rows has run, with that job's times, and before
  // Finish() or Refuse(). Finish() adds the lookup's own times.
  void AddTimes(const JobTimes& times);

  void Refuse(absl::Status status) override;
  absl::Status Prepare() override;
  const AttentionTask* task() const override { return &task_; }
  const CancelToken& cancel() const override { return *cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override;

 private:
  std::int64_t query_count() const { return inputs_ ? inputs_->rows : task_.query_count(); }
  double cost() const;
  void Report();  // Fills in *report_, if there is one.
  LookupResult ResultOf(AttentionAnswer answer) const;

  JobContext& context_;
  const std::shared_ptr<CancelToken> cancel_;
  LookupReport* const report_;
  Engine::LookupCallback callback_;

  std::shared_ptr<const Snapshot> snapshot_;
  RowSelection selection_;
  std::optional<RankingBudget::Taken> ranking_;
  MemoryValue memory_;                // task_.memory points to it.
  std::optional<MatrixView> inputs_;  // [T, input_dim]. Prepare() projects them.
  std::vector<float> queries_;        // [T, key_dim]: the projected inputs.
  AttentionTask task_;
  JobTimes times_;  // The sum of what AddTimes() was given.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
