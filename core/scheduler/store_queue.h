#ifndef SOFTLOOKUP_CORE_SCHEDULER_STORE_QUEUE_H_
#define SOFTLOOKUP_CORE_SCHEDULER_STORE_QUEUE_H_

#include <cstdint>
#include <deque>

#include "core/scheduler/queued_job.h"

namespace softlookup {

// Keeps the waiting jobs of one store in the order in which they were added, and cuts them into
// batches. Jobs without a store wait in a StoreQueue, too. Not thread-safe.
class StoreQueue {
 public:
  // A batch has at most `queries_max` queries, unless its first job alone has more.
  explicit StoreQueue(std::int64_t queries_max) : queries_max_(queries_max) {}

  void Add(QueuedJob job);
  // Removes the next batch and returns it. The queue must not be empty. Does not set Batch::begin.
  Batch TakeBatch();

  bool empty() const { return jobs_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(jobs_.size()); }
  // Returns the cost of the waiting jobs, with the cost of reading the rows once for each of their
  // batches.
  double waiting_cost() const { return waiting_cost_; }

  // Returns whether `job`, if it were added now, would be in the same batch as the last waiting
  // job.
  bool JoinsLast(const QueuedJob& job) const;
  // Returns whether the next batch can hold all waiting jobs and one more. Assumes that the further
  // job has as many queries as the average job of the batch that was taken last.
  bool HoldsOneMore() const { return query_count_ + queries_per_job_ <= queries_max_; }

 private:
  struct Waiting {
    QueuedJob job;
    double cost = 0;  // What the job adds to waiting_cost_.
  };

  // Returns for how many of a batch's `queries_max_` queries the job counts. A job that shares no
  // pass counts for at least all of them.
  std::int64_t BatchQueries(const QueuedJob& job) const;

  const std::int64_t queries_max_;
  std::deque<Waiting> jobs_;
  std::int64_t query_count_ = 0;         // Sum of BatchQueries over jobs_.
  std::int64_t last_batch_queries_ = 0;  // BatchQueries of the batch that will have the last job.
  double waiting_cost_ = 0;
  std::int64_t queries_per_job_ = 0;  // Average of the batch that was taken last.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_STORE_QUEUE_H_
