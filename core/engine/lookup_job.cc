#include "core/engine/lookup_job.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/cost.h"

namespace softlookup {

QueuedJob LookupJob::Queued(std::unique_ptr<LookupJob> job, std::uint64_t store) {
  const LookupTask& lookup = job->lookup_task_;
  SOFTLOOKUP_CHECK(lookup.snapshot() != nullptr) << "Select comes first";
  const double cost = lookup.cost();
  const std::int64_t query_count = lookup.query_count();
  const absl::Duration answer_time_max = job->context_.limits.lookup_wait_max;
  // A lookup that lists all weights shares no pass: it holds too many bytes until the pass ends.
  const bool shares_pass = lookup.attention().options.weights != WeightsMode::kAll;
  return {.store = store,
          .query_count = query_count,
          .shares_pass = shares_pass,
          .cost = cost,
          .reading_cost = ReadingCost(cost, query_count),
          .answer_time_max = answer_time_max,
          .job = std::move(job)};
}

void LookupJob::AddTimes(const JobTimes& times) {
  times_.queue += times.queue;
  times_.compute += times.compute;
}

void LookupJob::Refuse(absl::Status status) {
  Report();
  callback_(lookup_task_, std::move(status));
}

void LookupJob::Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) {
  AddTimes(times);
  counters_.queue_time.Observe(times_.queue);
  counters_.compute_time.Observe(times_.compute);
  Report();
  // Frees the bytes to rank rows before the callback, because the caller may send another large
  // lookup at once.
  lookup_task_.ReleaseRanking();
  if (answer.ok()) {
    std::uint64_t summed_rows = 0;
    for (const QueryStats& stats : answer->stats) summed_rows += stats.summed_rows;
    for (const PartialAnswer& partial : answer->partials) summed_rows += partial.state.summed_rows;
    counters_.summed_rows.fetch_add(summed_rows, std::memory_order_relaxed);
  }
  callback_(lookup_task_, std::move(answer));
}

void LookupJob::Report() {
  if (report_ == nullptr) return;
  report_->queue_wait = absl::FromChrono(times_.queue);
  report_->compute = absl::FromChrono(times_.compute);
  report_->scanned_rows = lookup_task_.attention().row_count();
}

}  // namespace softlookup
