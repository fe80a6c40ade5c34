#ifndef SOFTLOOKUP_CORE_ENGINE_ATTEND_JOB_H_
#define SOFTLOOKUP_CORE_ENGINE_ATTEND_JOB_H_

#include <memory>
#include <optional>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/matrix_view.h"
#include "core/engine/job_context.h"
#include "core/engine/ranking_budget.h"
#include "core/scheduler/job.h"
#include "core/store/stored_blocks.h"
#include "softlookup/engine.h"

namespace softlookup {

// Computes the attention over the keys and values of one request. Prepare() arranges them in
// blocks, as a store would. The job holds the blocks until Finish().
class AttendJob final : public Job {
 public:
  // `request` must have passed CheckAttend. The data that it points to must live until the
  // callback. `context` must outlive the job.
  AttendJob(JobContext& context, const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
            Engine::LookupCallback callback)
      : context_(context),
        request_(request),
        cancel_(std::move(cancel)),
        callback_(std::move(callback)) {}

  void Refuse(absl::Status status) override { callback_(std::move(status)); }
  absl::Status Prepare() override;
  const AttentionTask* task() const override { return &task_; }
  const CancelToken& cancel() const override { return *cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override;

 private:
  // Sets `matrix` to the request's inputs. If the request has a projection, projects the inputs by
  // its `weights` into `projected`, and sets `matrix` to the result instead.
  absl::Status MakeOfInputs(std::vector<float> Projection::*weights, std::vector<float>& projected,
                            MatrixView& matrix) const;

  JobContext& context_;
  const AttendRequest request_;
  const std::shared_ptr<CancelToken> cancel_;
  Engine::LookupCallback callback_;

  std::vector<float> projected_queries_;
  StoredBlocks rows_;
  StoredBlocks::Blocks blocks_;  // Of all rows_.
  std::optional<RankingBudget::Taken> ranking_;
  AttentionTask task_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_ATTEND_JOB_H_
