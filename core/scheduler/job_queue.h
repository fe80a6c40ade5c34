#ifndef SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
#define SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "core/scheduler/queued_job.h"
#include "core/scheduler/return_wait.h"
#include "core/scheduler/store_queue.h"
#include "core/scheduler/wait_bound.h"

namespace softlookup {

struct JobQueueOptions {
  // A batch has at most this many queries, unless its first job alone has more.
  std::int64_t queries_max = 256;
  // Longest time a store's next batch waits for more lookups after a batch was answered. The wait
  // ends early once as large a part of the clients has returned as after the previous batch, or
  // once waiting costs more than the shared pass saves. A lookup that finds no other client never
  // waits.
  absl::Duration wait_max = absl::Milliseconds(5);
};

// Decides which of the waiting jobs run next. Jobs of one store run as batches, one batch of a
// store at a time. Among the stores that have jobs waiting, the one that was served least so far is
// next, so that scans of a large store do not hold up those of small ones. Jobs without a store
// count as one more store, and short jobs without a store as another. Several batches of such jobs
// may run at a time.
//
// The caller passes the current time, which must not go back. Not thread-safe.
class JobQueue {
 public:
  explicit JobQueue(const JobQueueOptions& options) : options_(options) {}

  void Add(QueuedJob job, absl::Time now);
  // Returns the batch to run now, if any.
  std::optional<Batch> Take(absl::Time now);
  // Notes that the answers of `batch` are about to be sent, so that clients may return with more
  // jobs. Call this before Done. `answered_count` is the number of jobs that took part in the pass
  // and were not cancelled.
  void OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now);
  // Notes that `batch` has ended. Until then, Take returns no other batch of its store.
  void Done(const Batch& batch, absl::Time now);

  // Returns the time from which Take has a batch, if the queue does not change before. The time is
  // not after now if Take has a batch now. It is the infinite future if Take has none before the
  // next Add() or Done().
  absl::Time NextTime() const;
  // Returns the work that Take would return until and with `job` if it were added now. Does not
  // read `job.job`.
  WorkUntilAnswer WorkUntil(const QueuedJob& job) const;

  std::int64_t size() const { return size_; }
  // Returns the cost of all waiting jobs.
  double waiting_cost() const;

 private:
  // What decides when the next batch of one store runs.
  struct StoreTurn {
    explicit StoreTurn(std::int64_t queries_max) : queue(queries_max) {}

    StoreQueue queue;
    ReturnWait returns;
    int running_count = 0;  // Batches of the store that run.
    // Cost of the jobs served so far, without reading. When a job is added to an empty queue, this
    // is raised to JobQueue::served_ if it is below. So a store gains nothing by being idle.
    double served = 0;
  };

  // Returns the time from which the next batch of the store may run. It is the infinite future if
  // no job waits, or while a batch of the same store runs.
  static absl::Time ReadyTime(std::uint64_t store, const StoreTurn& turn);
  // Removes the stores that are idle and that no longer matter to the order of others.
  void ForgetIdle(absl::Time now);

  const JobQueueOptions options_;
  std::map<std::uint64_t, StoreTurn> stores_;  // By number.
  std::int64_t size_ = 0;
  double served_ = 0;  // The largest `served` that a store had when Take chose it.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
