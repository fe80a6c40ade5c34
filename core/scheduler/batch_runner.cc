#include "core/scheduler/batch_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attend.h"

namespace softlookup {
namespace {

bool IsCancellation(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

// Returns done_cost / cost, or 1 if `cost` is 0. Rounding errors in the two sums can push the
// quotient above 1, so it is clamped.
double DonePart(double done_cost, double cost) {
  return cost > 0 ? std::clamp(done_cost / cost, 0.0, 1.0) : 1;
}

void Finish(QueuedJob& job, absl::Time begin, absl::Time end,
            absl::StatusOr<AttentionAnswer> answer) {
  job.job->Finish(std::move(answer), {.queue = absl::ToChronoNanoseconds(begin - job.queued_at),
                                      .compute = absl::ToChronoNanoseconds(end - begin)});
}

}  // namespace

double BatchRunner::Run(absl::Span<QueuedJob> jobs, absl::Time begin,
                        absl::FunctionRef<void(std::int64_t)> before_answers) {
  std::vector<absl::Status> statuses(jobs.size());
  pool_.ForkJoin(static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i) {
    Job& job = *jobs[static_cast<std::size_t>(i)].job;
    absl::Status status = job.cancel().Check();
    if (status.ok()) status = job.Prepare();
    statuses[static_cast<std::size_t>(i)] = std::move(status);
  });

  double cost = 0, done_cost = 0;
  std::vector<QueuedJob*> scanned;
  std::vector<SharedTask> tasks;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    QueuedJob& job = jobs[i];
    cost += job.cost;
    const AttentionTask* const task = statuses[i].ok() ? job.job->task() : nullptr;
    if (task != nullptr) {
      scanned.push_back(&job);
      tasks.push_back({.task = task, .cancel = &job.job->cancel()});
      continue;
    }
    if (statuses[i].ok()) done_cost += job.cost;
    absl::StatusOr<AttentionAnswer> answer = AttentionAnswer{};
    if (!statuses[i].ok()) answer = std::move(statuses[i]);
    Finish(job, begin, clock_.Now(), std::move(answer));
  }
  if (scanned.empty()) {
    before_answers(0);
    return DonePart(done_cost, cost);
  }

  const ScannedRows rows = AttendTogether(absl::MakeSpan(tasks), pool_);
  const absl::Time end = clock_.Now();
  Count(scanned, rows);
  std::int64_t answered_count = 0;
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    const absl::Status& status = tasks[i].answer.status();
    // A task that failed may not have been computed at all, so its cost does not count as done.
    if (status.ok()) done_cost += scanned[i]->cost;
    if (!IsCancellation(status)) ++answered_count;
  }
  before_answers(answered_count);
  pool_.ForkJoin(static_cast<std::int64_t>(scanned.size()), [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    Finish(*scanned[index], begin, end, std::move(tasks[index].answer));
  });
  return DonePart(done_cost, cost);
}

void BatchRunner::Count(absl::Span<QueuedJob* const> scanned, const ScannedRows& rows) {
  if (!IsStore(scanned[0]->store)) return;
  std::int64_t query_count = 0;
  for (const QueuedJob* const job : scanned) query_count += job->query_count;
  counters_.queries_per_pass.Observe(query_count);
  counters_.jobs_per_pass.Observe(static_cast<std::int64_t>(scanned.size()));
  counters_.rows += rows.rows;
  counters_.bytes += rows.bytes;
  counters_.sketched_rows += rows.sketched_rows;
  counters_.skipped_blocks += rows.skipped_blocks;
}

}  // namespace softlookup
