#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/lookup_counters.h"
#include "core/engine/lookup_task.h"
#include "core/scheduler/queued_job.h"
#include "softlookup/engine.h"

namespace softlookup {

// Runs one LookupTask as a job of the scheduler, and answers the caller of the lookup, or of the
// part of one.
class LookupJob final : public Job {
 public:
  // Gets the task with its answer, or with the error that ended it.
  using Callback =
      absl::AnyInvocable<void(const LookupTask& task, absl::StatusOr<AttentionAnswer> answer)>;

  // `context`, `counters` and `*report` must outlive the job. `report` may be null.
  LookupJob(JobContext& context, LookupCounters& counters, std::shared_ptr<CancelToken> cancel,
            LookupReport* report, Callback callback)
      : context_(context),
        counters_(counters),
        cancel_(std::move(cancel)),
        report_(report),
        callback_(std::move(callback)),
        lookup_task_(context) {}

  // What the job computes. The job's maker calls its Select() before it submits the job. If
  // Select() fails, the maker refuses the job instead. The data that the request points to must
  // live until the callback.
  LookupTask& lookup_task() { return lookup_task_; }

  // Returns `job` as Scheduler::Submit takes it. Call this after LookupTask::Select(). `store` is
  // the number of the snapshot's store.
  static QueuedJob Queued(std::unique_ptr<LookupJob> job, std::uint64_t store);
  // Adds `times` to the lookup's times in its report and in the metrics. If another job selected
  // the lookup's rows, call this with that job's times, before Finish() or Refuse(). Finish() adds
  // the times of this job.
  void AddTimes(const JobTimes& times);

  void Refuse(absl::Status status) override;
  absl::Status Prepare() override { return lookup_task_.ProjectInputs(*cancel_); }
  const AttentionTask* task() const override { return &lookup_task_.attention(); }
  const CancelToken& cancel() const override { return *cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override;

 private:
  void Report();  // Fills in *report_, if there is one.

  JobContext& context_;
  LookupCounters& counters_;
  const std::shared_ptr<CancelToken> cancel_;
  LookupReport* const report_;
  Callback callback_;

  LookupTask lookup_task_;
  JobTimes times_;  // The sum of what AddTimes() was given.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUP_JOB_H_
