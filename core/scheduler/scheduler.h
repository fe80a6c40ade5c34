#ifndef SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_
#define SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/parallel/fork_join_pool.h"
#include "core/scheduler/batch_runner.h"
#include "core/scheduler/job_queue.h"
#include "core/scheduler/work_rate.h"

namespace softlookup {

struct SchedulerOptions {
  // Most jobs that may wait. A further job that would have to wait gets QUEUE_FULL, unless it is
  // submitted with kAdmitted.
  std::int64_t waiting_jobs_max = 1024;
  // A job whose answer is expected after its answer_time_max is still admitted if the answer is
  // expected within `stretch_max` times the time that the job takes alone.
  double stretch_max = 4;
  JobQueueOptions queue;
};

// Hands jobs over from their callers to the threads of a pool. Holds the one lock under which jobs
// are admitted, taken and done. RetryDelayOf decides which job is refused because too much work
// waits. JobQueue decides which jobs are next. BatchRunner runs them. Thread-safe.
class Scheduler {
 public:
  enum class Admission {
    // A job of a cost up to kInlineCostMax runs on the calling thread before Submit returns. A job
    // of a larger cost runs later on another thread, or is refused.
    kBounded,
    // The job was admitted before. It is not refused, and runs later on another thread.
    kAdmitted,
  };

  // `pool` and `clock` must outlive this object. Jobs that do not run on the calling thread run on
  // the threads of `pool`. The scheduler keeps up to pool.thread_count() tasks in the pool's queue.
  // The queue must have room for them beside all other tasks: the process ends if Post() refuses
  // one.
  Scheduler(ForkJoinPool& pool, const SchedulerOptions& options,
            const Clock& clock = Clock::Steady());
  // Waits until all submitted jobs have run.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `job.job`, or refuses it with QUEUE_FULL. `admission` says when and on which thread.
  void Submit(QueuedJob job, Admission admission);

  // Returns the error with which Submit would refuse `job` with kBounded, or OK. `job.job` may be
  // null.
  absl::Status CheckRoom(const QueuedJob& job) const;

  const PassCounters& counters() const { return batch_runner_.counters(); }
  std::int64_t waiting_jobs() const;
  double waiting_cost() const;

 private:
  absl::Status RefusalOf(const QueuedJob& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Posts one more call of RunNext, which runner_count_ must count already.
  void PostRunner();
  // Runs the batch that AwaitNext returns, on a thread of the pool. Does nothing if AwaitNext
  // returns none. Before the batch runs, posts another call of RunNext if NeedsRunner() is true.
  // After the batch, posts another call if a batch is ready, or will be without a further Add() or
  // Done().
  void RunNext();
  // Waits for the next batch and returns it. Returns nothing if there is none before the next Add()
  // or Done(). Also returns nothing if no batch is ready and another thread waits already.
  std::optional<Batch> AwaitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether one more call of RunNext may be posted and would have something to do.
  bool NeedsRunner() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SchedulerOptions options_;
  const Clock& clock_;
  ForkJoinPool& pool_;
  BatchRunner batch_runner_;

  mutable absl::Mutex mutex_;
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  WorkRate rate_ ABSL_GUARDED_BY(mutex_);
  int runner_count_ ABSL_GUARDED_BY(mutex_) = 0;     // Calls of RunNext, posted or in progress.
  bool has_waiter_ ABSL_GUARDED_BY(mutex_) = false;  // Whether a thread waits in AwaitNext.
  std::uint64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Calls of queue_.Add() and Done().
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_SCHEDULER_H_
