#include "core/scheduler/scheduler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/scheduler/wait_bound.h"

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

}  // namespace

Scheduler::Scheduler(ForkJoinPool& pool, const SchedulerOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      pool_(pool),
      batch_runner_(pool, clock),
      queue_(options.queue) {}

Scheduler::~Scheduler() {
  // For every waiting job there is a runner that will run it. So no job is left once no runner is
  // left.
  const auto is_done = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runner_count_ == 0; };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_done));
}

void Scheduler::Submit(QueuedJob job, Admission admission) {
  SOFTLOOKUP_CHECK(job.job != nullptr) << "a job of store " << job.store;
  if (admission == Admission::kBounded && job.cost <= kInlineCostMax) {
    job.queued_at = clock_.Now();
    batch_runner_.Run({&job, 1}, job.queued_at, [](std::int64_t) {});
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
  PostRunner();
}

absl::Status Scheduler::RefusalOf(const QueuedJob& job) const {
  if (queue_.size() >= options_.waiting_jobs_max) return TooManyWait(options_.waiting_jobs_max);
  const std::optional<absl::Duration> retry_delay =
      RetryDelayOf(job, queue_.WorkUntil(job), rate_, options_.stretch_max);
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
  // NextTime() leaves out a store whose batch runs. Such a store needs no other runner: the runner
  // of its batch posts the next call of RunNext.
  const absl::Time next = queue_.NextTime();
  if (next == absl::InfiniteFuture() || runner_count_ == pool_.thread_count()) return false;
  return !has_waiter_ || next <= clock_.Now();
}

void Scheduler::PostRunner() {
  const bool is_posted = pool_.Post([this] { RunNext(); });
  SOFTLOOKUP_CHECK(is_posted) << "the pool has no room for a call of RunNext";
}

void Scheduler::RunNext() {
  std::optional<Batch> batch;
  WorkRate::Run run;
  bool needs_other = false;
  {
    absl::MutexLock lock(&mutex_);
    SOFTLOOKUP_CHECK(runner_count_ > 0 && runner_count_ <= pool_.thread_count())
        << runner_count_ << " runners of " << pool_.thread_count() << " threads";
    batch = AwaitNext();
    if (!batch) {
      --runner_count_;
      return;
    }
    run = rate_.Begin(batch->begin);
    needs_other = NeedsRunner();
    if (needs_other) ++runner_count_;
  }
  if (needs_other) PostRunner();
  const double done_part = batch_runner_.Run(
      absl::MakeSpan(batch->jobs), batch->begin, [&](std::int64_t answered_count) {
        absl::MutexLock lock(&mutex_);
        queue_.OnAnswers(*batch, answered_count, clock_.Now());
      });
  // Frees what the jobs hold before the store's next batch begins.
  batch->jobs.clear();
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_.Now();
    queue_.Done(*batch, now);
    rate_.End(run, batch->cost, done_part * batch->cost, now);
    ++change_count_;
    if (queue_.NextTime() == absl::InfiniteFuture()) {
      --runner_count_;
      return;
    }
  }
  // Posts a task instead of looping, so that tasks which wait in the pool run first.
  PostRunner();
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

}  // namespace softlookup
