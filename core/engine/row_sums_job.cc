#include "core/engine/row_sums_job.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/cost.h"
#include "core/base/status_macros.h"
#include "core/engine/lookup_part.h"

namespace softlookup {

QueuedJob RowSumsJob::Queued(std::unique_ptr<RowSumsJob> job,
                             std::shared_ptr<const Snapshot> snapshot) {
  job->snapshot_ = std::move(snapshot);
  const double cost = job->cost();
  return {.store = cost <= kInlineCostMax ? kNoStoreShort : kNoStore,
          .cost = cost,
          .job = std::move(job)};
}

absl::Status RowSumsJob::Prepare() {
  SOFTLOOKUP_RETURN_IF_ERROR(lookup_task_.SelectWithoutRanking(request_, snapshot_, range_));
  SOFTLOOKUP_ASSIGN_OR_RETURN(sums_, SumRows(lookup_task_, rows_, *cancel_));
  return absl::OkStatus();
}

void RowSumsJob::Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) {
  if (request_.report != nullptr) {
    request_.report->queue_wait = absl::FromChrono(times.queue);
    request_.report->compute = absl::FromChrono(times.compute);
  }
  if (!answer.ok()) return callback_(answer.status());
  counters_.summed_rows.fetch_add(row_count(), std::memory_order_relaxed);
  callback_(std::move(sums_));
}

double RowSumsJob::cost() const {
  const StoreConfig& config = snapshot_->config();
  return LookupTask::SelectCost(request_, *snapshot_, range_) +
         SelectionCost(rows_.id_positions.size(), row_count()) +
         PassOverRowsCost(row_count(), config.value_dim / config.num_heads);
}

std::uint64_t RowSumsJob::row_count() const {
  std::uint64_t count = 0;
  for (const std::vector<WeighedRow>& rows : rows_.rows) count += rows.size();
  return count;
}

}  // namespace softlookup
