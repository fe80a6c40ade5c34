#ifndef SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_
#define SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/parallel/fork_join_pool.h"
#include "core/scheduler/job_queue.h"

namespace softlookup {

struct SchedulerOptions {
  // Threads that compute. At least 1.
  int thread_count = 1;
  // Jobs that wait, at most. Beyond: QUEUE_FULL, unless the job was admitted before.
  std::int64_t waiting_jobs_max = 1024;
  JobQueueOptions queue;
};

// What the passes over stores did. Thread-safe.
struct PassCounters {
  Histogram queries_per_pass{kCountBounds};
  Histogram jobs_per_pass{kCountBounds};
  std::atomic<std::uint64_t> rows{0};  // Once for all jobs of a pass.
  std::atomic<std::uint64_t> bytes{0};
};

// Runs lookups, Attends, projections, and the selection of rows for lookups. It owns the threads,
// the queue and the account of what waits, and refuses work if too much computing waits already.
// Jobs that wait for the same store run as one batch, in one pass of its rows. Thread-safe.
class Scheduler {
 public:
  enum class Admission {
    // A small job runs on the calling thread, before Submit returns. A large one may be refused.
    kBounded,
    // The job was admitted before. It is not refused, and runs on another thread.
    kAdmitted,
  };

  explicit Scheduler(const SchedulerOptions& options, const Clock& clock = Clock::Steady());
  // Runs all jobs first.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `job.job`, here or later on another thread, or refuses it with QUEUE_FULL.
  void Submit(QueuedJob job, Admission admission);

  // The error with which Submit would refuse `job`, whose `job` may be null. OK if it would not.
  absl::Status CheckRoom(const QueuedJob& job) const;

  // For loops over things that are not jobs.
  ForkJoinPool& pool() { return pool_; }

  const PassCounters& counters() const { return counters_; }
  std::int64_t waiting_jobs() const;
  double waiting_cost() const;

 private:
  absl::Status RefusalOf(const QueuedJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs on a thread of the pool: runs the next batch, once there is one.
  void RunNext();
  // Waits for the next batch, unless another thread waits already. None if there is nothing to do.
  std::optional<Batch> AwaitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more call of RunNext would have something to do.
  bool NeedsRunner() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs jobs that begin at `begin`. Calls `before_answers`, after the pass, with the number of
  // jobs that took part in it and were not cancelled. Returns the part of the cost that was done.
  double Run(absl::Span<QueuedJob> jobs, absl::Time begin,
             absl::FunctionRef<void(std::int64_t answered_count)> before_answers);
  static void Finish(QueuedJob& job, absl::Time begin, absl::Time end,
                     absl::StatusOr<AttentionAnswer> answer);
  void Count(absl::Span<QueuedJob* const> scanned, const ScannedRows& rows);

  const SchedulerOptions options_;
  const Clock& clock_;
  PassCounters counters_;

  mutable absl::Mutex mutex_;
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  int runner_count_ ABSL_GUARDED_BY(mutex_) = 0;     // Calls of RunNext posted or in progress.
  bool has_waiter_ ABSL_GUARDED_BY(mutex_) = false;  // A thread waits in AwaitNext.
  std::uint64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the queue.

  ForkJoinPool pool_;  // Last: its threads use the rest.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_
