#include "core/scheduler/scheduler.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/attend.h"
#include "core/base/check.h"
#include "core/base/cost.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// How long a caller should wait before it tries again, if too many jobs wait.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);

absl::Status TooManyWait(std::int64_t waiting_jobs_max) {
  return WithRetryAfter(
      MakeError(reasons::kQueueFull,
                absl::StrCat("The server's queue of ", waiting_jobs_max, " jobs is full"),
                {{"limit", absl::StrCat(waiting_jobs_max)}}),
      kRetryDelay);
}

absl::Status TooMuchWaits(absl::Duration retry_delay) {
  return WithRetryAfter(
      MakeError(reasons::kQueueFull, "More work waits than the server can do soon"), retry_delay);
}

bool IsCancellation(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      queue_(options.queue),
      pool_(options.thread_count, std::numeric_limits<std::int64_t>::max()) {}

Scheduler::~Scheduler() {
  // For every waiting job there is a runner that will run it.
  const auto is_done = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runner_count_ == 0; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_done));
}

void Scheduler::Submit(QueuedJob job, Admission admission) {
  SOFTLOOKUP_CHECK(job.job != nullptr) << "a job of store " << job.store;
  if (admission == Admission::kBounded && job.cost <= kInlineCostMax) {
    job.queued_at = clock_.Now();
    Run({&job, 1}, job.queued_at, [](std::int64_t) {});
    return;
  }
  std::unique_ptr<Job> refused;
  absl::Status refusal;
  {
    absl::MutexLock lock(&mutex_);
    if (admission == Admission::kBounded) refusal = RefusalOf(job);
    if (refusal.ok()) {
      queue_.Add(std::move(job), clock_.Now());
      ++change_count_;
      if (!NeedsRunner()) return;
      ++runner_count_;
    } else {
      refused = std::move(job.job);
    }
  }
  if (refused != nullptr) return refused->Refuse(std::move(refusal));
  pool_.Post([this] { RunNext(); });
}

absl::Status Scheduler::RefusalOf(const QueuedJob& job) const {
  if (queue_.size() >= options_.waiting_jobs_max) return TooManyWait(options_.waiting_jobs_max);
  const std::optional<absl::Duration> retry_delay = queue_.Refusal(job);
  return retry_delay ? TooMuchWaits(*retry_delay) : absl::OkStatus();
}

absl::Status Scheduler::CheckRoom(const QueuedJob& job) const {
  if (job.cost <= kInlineCostMax) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return RefusalOf(job);
}

std::int64_t Scheduler::waiting_jobs() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

double Scheduler::waiting_cost() const {
  absl::MutexLock lock(&mutex_);
  return queue_.waiting_cost();
}

bool Scheduler::NeedsRunner() const {
  // NextTime() leaves out a store whose batch runs. Such a store needs no other runner: the one
  // that runs its batch posts the next call of RunNext.
  const absl::Time next = queue_.NextTime();
  if (next == absl::InfiniteFuture() || runner_count_ == options_.thread_count) return false;
  return !has_waiter_ || next <= clock_.Now();
}

void Scheduler::RunNext() {
  std::optional<Batch> batch;
  bool needs_other = false;
  {
    absl::MutexLock lock(&mutex_);
    SOFTLOOKUP_CHECK(runner_count_ > 0 && runner_count_ <= options_.thread_count)
        << runner_count_ << " runners of " << options_.thread_count << " threads";
    batch = AwaitNext();
    if (!batch) {
      --runner_count_;
      return;
    }
    needs_other = NeedsRunner();
    if (needs_other) ++runner_count_;
  }
  if (needs_other) pool_.Post([this] { RunNext(); });
  const double done_part =
      Run(absl::MakeSpan(batch->jobs), clock_.Now(), [&](std::int64_t answered_count) {
        absl::MutexLock lock(&mutex_);
        queue_.OnAnswers(*batch, answered_count, clock_.Now());
      });
  // Frees what the jobs hold before the store's next batch begins.
  batch->jobs.clear();
  {
    absl::MutexLock lock(&mutex_);
    queue_.Done(*batch, clock_.Now(), done_part);
    ++change_count_;
    if (queue_.NextTime() == absl::InfiniteFuture()) {
      --runner_count_;
      return;
    }
  }
  // Posts a task instead of looping, so that tasks which wait in the pool run first.
  pool_.Post([this] { RunNext(); });
}

std::optional<Batch> Scheduler::AwaitNext() {
  for (;;) {
    std::optional<Batch> batch = queue_.Take(clock_.Now());
    const absl::Time next = queue_.NextTime();
    if (batch || next == absl::InfiniteFuture() || has_waiter_) return batch;
    const auto has_changed = [this, seen = change_count_]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return change_count_ != seen;
    };
    has_waiter_ = true;
    clock_.AwaitUntil(mutex_, absl::Condition(&has_changed), next);
    has_waiter_ = false;
  }
}

double Scheduler::Run(absl::Span<QueuedJob> jobs, absl::Time begin,
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
    return cost > 0 ? done_cost / cost : 1;
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
  return cost > 0 ? done_cost / cost : 1;
}

void Scheduler::Finish(QueuedJob& job, absl::Time begin, absl::Time end,
                       absl::StatusOr<AttentionAnswer> answer) {
  job.job->Finish(std::move(answer), {.queue = absl::ToChronoNanoseconds(begin - job.queued_at),
                                      .compute = absl::ToChronoNanoseconds(end - begin)});
}

void Scheduler::Count(absl::Span<QueuedJob* const> scanned, const ScannedRows& rows) {
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
