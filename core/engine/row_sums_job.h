#ifndef SOFTLOOKUP_CORE_ENGINE_ROW_SUMS_JOB_H_
#define SOFTLOOKUP_CORE_ENGINE_ROW_SUMS_JOB_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/lookup_counters.h"
#include "core/engine/lookup_task.h"
#include "core/scheduler/queued_job.h"
#include "core/store/snapshot.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {

// Reads the values of rows that top_k has selected, as a job of the scheduler without a pass.
class RowSumsJob final : public Job {
 public:
  // `context` and `counters` must outlive the job. The data that `request` points to must live
  // until the callback, and so must *request.report.
  RowSumsJob(JobContext& context, LookupCounters& counters, LookupRequest request,
             const PositionRange& range, RowSumsRequest rows, std::shared_ptr<CancelToken> cancel,
             Engine::RowSumsCallback callback)
      : counters_(counters),
        request_(std::move(request)),
        range_(range),
        rows_(std::move(rows)),
        cancel_(std::move(cancel)),
        callback_(std::move(callback)),
        lookup_task_(context) {}

  // Returns `job`, which is to read `snapshot`, as Scheduler::Submit takes it.
  static QueuedJob Queued(std::unique_ptr<RowSumsJob> job,
                          std::shared_ptr<const Snapshot> snapshot);

  void Refuse(absl::Status status) override { callback_(std::move(status)); }
  absl::Status Prepare() override;
  const AttentionTask* task() const override { return nullptr; }
  const CancelToken& cancel() const override { return *cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override;

 private:
  double cost() const;
  std::uint64_t row_count() const;  // Rows to add up.

  LookupCounters& counters_;
  const LookupRequest request_;
  const PositionRange range_;
  const RowSumsRequest rows_;
  const std::shared_ptr<CancelToken> cancel_;
  Engine::RowSumsCallback callback_;

  std::shared_ptr<const Snapshot> snapshot_;  // Set by Queued().
  LookupTask lookup_task_;
  RowSums sums_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ROW_SUMS_JOB_H_
