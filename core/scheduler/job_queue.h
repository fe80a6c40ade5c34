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
  // ends early once the next batch is full, or once as large a part of the clients has returned as
  // after the previous batch. It also ends once it has taken as long as the last batch took to read
  // its rows, which is what a shared pass saves. A lookup that finds no other client never waits.
  absl::Duration wait_max = absl::Milliseconds(5);
};

// Decides which of the waiting jobs run next. Jobs of one store run as batches, one batch of a
// store at a time. Of the stores whose next batch is ready, the one whose jobs so far cost least is
// next. So scans of a large store do not hold up scans of small stores. Jobs without a store count
// as one more store, and short jobs without a store as another. Several batches of jobs without a
// store may run at the same time.
//
// The caller passes the current time, which must not go back. Not thread-safe.
class JobQueue {
 public:
  explicit JobQueue(const JobQueueOptions& options) : options_(options) {}

  void Add(QueuedJob job, absl::Time now);
  // Removes the jobs of the batch to run now, and returns the batch. Returns nothing if no batch is
  // ready.
  std::optional<Batch> Take(absl::Time now);
  // Notes that the answers of `batch` are about to be sent, so that clients may return with more
  // jobs. Call this before Done. `answered_count` is the number of jobs that took part in the pass
  // and were not cancelled.
  void OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now);
  // Notes that `batch` has ended. Until then, Take returns no other batch of its store. This does
  // not hold for jobs without a store.
  void Done(const Batch& batch, absl::Time now);

  // Returns the time from which Take returns a batch, if the queue does not change before. If that
  // time is not later than now, Take returns a batch now. The infinite future means that Take
  // returns none before the next Add() or Done().
  absl::Time NextTime() const;
  // Estimates, as if `job` were added now, the cost of the waiting jobs that would run before it,
  // and its own cost. Does not count batches that already run. Does not read `job.job`.
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
    // Cost of the jobs served so far, without the cost of reading rows. When a job is added to an
    // empty queue, `served` is raised to at least JobQueue::served_. So a store gains nothing by
    // being idle.
    double served = 0;
  };

  // Returns the time from which the next batch of `store` may run. It is the infinite future if no
  // job waits. It also is while a batch of `store` runs, if IsStore(store).
  static absl::Time ReadyTime(std::uint64_t store, const StoreTurn& turn);
  // Removes idle stores that no longer matter to the order in which stores are served. Of the other
  // idle stores, keeps only a limited number.
  void ForgetIdle(absl::Time now);

  const JobQueueOptions options_;
  std::map<std::uint64_t, StoreTurn> stores_;  // By store number.
  std::int64_t size_ = 0;
  double served_ = 0;  // The largest `served` that a store had when Take chose it.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
