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
  // Most jobs that may wait. Further jobs get QUEUE_FULL, unless they are submitted with kAdmitted.
  std::int64_t waiting_jobs_max = 1024;
  JobQueueOptions queue;
};

// Counts of the passes over rows of stores. Passes of jobs without a store do not count.
// Thread-safe.
struct PassCounters {
  Histogram queries_per_pass{kCountBounds};
  Histogram jobs_per_pass{kCountBounds};
  // Sums of the members of ScannedRows with the same names.
  std::atomic<std::uint64_t> rows{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> sketched_rows{0};
  std::atomic<std::uint64_t> skipped_blocks{0};
};

// Runs lookups, Attends, projections, and the selection of rows for lookups. Owns the threads and
// the queue. Refuses a job if too much work waits already. Jobs that wait for the same store run in
// batches, each in one pass over the store's rows. Thread-safe.
class Scheduler {
 public:
  enum class Admission {
    // A job of a cost up to kInlineCostMax runs on the calling thread before Submit returns. A job
    // of a larger cost runs later on another thread, or is refused.
    kBounded,
    // The job was admitted before. It is not refused, and runs later on another thread.
    kAdmitted,
  };

  explicit Scheduler(const SchedulerOptions& options, const Clock& clock = Clock::Steady());
  // Waits until all submitted jobs have run.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `job.job`, or refuses it with QUEUE_FULL. `admission` says when and on which thread.
  void Submit(QueuedJob job, Admission admission);

  // Returns the error with which Submit would refuse `job` with kBounded, or OK. `job.job` may be
  // null.
  absl::Status CheckRoom(const QueuedJob& job) const;

  // The threads, for loops that are not jobs.
  ForkJoinPool& pool() { return pool_; }

  const PassCounters& counters() const { return counters_; }
  std::int64_t waiting_jobs() const;
  double waiting_cost() const;

 private:
  absl::Status RefusalOf(const QueuedJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs the batch that AwaitNext returns, on a thread of the pool. Does nothing if AwaitNext
  // returns none. Before the batch runs, posts another call if NeedsRunner() is true. Afterwards
  // posts another call if a batch is ready, or will be without another Add() or Done().
  void RunNext();
  // Waits for the next batch and returns it. Returns nothing if there is none before the next Add()
  // or Done(). Also returns nothing if no batch is ready and another thread waits already.
  std::optional<Batch> AwaitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether one more call of RunNext may be posted and would have something to do.
  bool NeedsRunner() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Runs `jobs`, whose batch begins at `begin`. Prepares them. Then finishes the jobs that have no
  // pass, and those that were cancelled or failed in Prepare. Then runs the pass of the others,
  // calls `before_answers` with the number of them that were not cancelled, and finishes them.
  // Returns the part of the cost, in [0, 1], that was done.
  double Run(absl::Span<QueuedJob> jobs, absl::Time begin,
             absl::FunctionRef<void(std::int64_t answered_count)> before_answers);
  static void Finish(QueuedJob& job, absl::Time begin, absl::Time end,
                     absl::StatusOr<AttentionAnswer> answer);
  // Adds the pass of the jobs `scanned`, which read `rows`, to counters_.
  void Count(absl::Span<QueuedJob* const> scanned, const ScannedRows& rows);

  const SchedulerOptions options_;
  const Clock& clock_;
  PassCounters counters_;

  mutable absl::Mutex mutex_;
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  int runner_count_ ABSL_GUARDED_BY(mutex_) = 0;     // Calls of RunNext, posted or in progress.
  bool has_waiter_ ABSL_GUARDED_BY(mutex_) = false;  // Whether a thread waits in AwaitNext.
  std::uint64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Counts changes of the queue.

  ForkJoinPool pool_;  // The last member: its threads use the others.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_
