#include "core/scheduler/store_queue.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace softlookup {

void StoreQueue::Add(QueuedJob job) {
  const bool joins = JoinsLast(job);
  const double cost = joins ? job.cost : job.cost + job.reading_cost;
  const std::int64_t queries = BatchQueries(job);
  last_batch_queries_ = queries + (joins ? last_batch_queries_ : 0);
  waiting_cost_ += cost;
  query_count_ += queries;
  jobs_.push_back({.job = std::move(job), .cost = cost});
}

std::int64_t StoreQueue::BatchQueries(const QueuedJob& job) const {
  const std::int64_t queries = std::max<std::int64_t>(job.query_count, 1);
  if (job.shares_pass && IsStore(job.store)) return queries;
  return std::max(queries, queries_max_);
}

bool StoreQueue::JoinsLast(const QueuedJob& job) const {
  return !jobs_.empty() && last_batch_queries_ + BatchQueries(job) <= queries_max_;
}

Batch StoreQueue::TakeBatch() {
  SOFTLOOKUP_CHECK(!jobs_.empty()) << "no job waits";
  Batch batch{.store = jobs_.front().job.store};
  const double reading_cost = jobs_.front().job.reading_cost;
  std::int64_t query_count = 0;
  while (!jobs_.empty()) {
    auto& [job, cost] = jobs_.front();
    const std::int64_t queries = BatchQueries(job);
    if (!batch.jobs.empty() && query_count + queries > queries_max_) break;
    query_count += queries;
    batch.cost += cost;
    batch.jobs.push_back(std::move(job));
    jobs_.pop_front();
  }
  query_count_ -= query_count;
  SOFTLOOKUP_CHECK(query_count_ >= 0) << "queries " << query_count_;
  SOFTLOOKUP_CHECK(jobs_.empty() == (query_count_ == 0)) << "queries " << query_count_;
  queries_per_job_ = query_count / static_cast<std::int64_t>(batch.jobs.size());
  // The waiting cost of an empty queue is exactly 0. The difference could have a rounding error.
  waiting_cost_ = jobs_.empty() ? 0 : waiting_cost_ - batch.cost;
  batch.reading_part = batch.cost > 0 ? reading_cost / batch.cost : 0;
  return batch;
}

}  // namespace softlookup
