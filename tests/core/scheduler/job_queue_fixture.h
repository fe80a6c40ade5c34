#ifndef SOFTLOOKUP_TESTS_CORE_SCHEDULER_JOB_QUEUE_FIXTURE_H_
#define SOFTLOOKUP_TESTS_CORE_SCHEDULER_JOB_QUEUE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/scheduler/job_queue.h"
#include "tests/core/scheduler/named_job.h"

namespace softlookup {

// A queue whose time is told, and its batches that run.
class JobQueueFixture : public ::testing::Test {
 protected:
  static constexpr absl::Duration kWait = absl::Microseconds(200);

  void Add(std::uint64_t store, std::string name, std::int64_t queries = 1, double cost = 1) {
    queue_.Add(
        Named(
            std::move(name),
            {.store = store, .query_count = queries, .cost = cost, .reading_cost = reading_cost_}),
        now_);
  }

  // The names of the next batch, which then runs. Empty if there is none.
  std::vector<std::string> Take() {
    std::optional<Batch> batch = queue_.Take(now_);
    if (!batch) return {};
    store_ = batch->store;
    running_[store_].push_back(*std::move(batch));
    return NamesOf(running_[store_].back());
  }

  // The store's first batch has ended. Returns it.
  Batch Done(std::uint64_t store) {
    Batch batch = std::move(running_[store].front());
    running_[store].pop_front();
    queue_.Done(batch, now_);
    return batch;
  }

  absl::Time now_ = absl::UnixEpoch();
  JobQueue queue_{{.queries_max = 4, .wait_max = kWait}};
  std::map<std::uint64_t, std::deque<Batch>> running_;  // By store.
  double reading_cost_ = 0;
  std::uint64_t store_ = 0;  // Of the last batch.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_SCHEDULER_JOB_QUEUE_FIXTURE_H_
