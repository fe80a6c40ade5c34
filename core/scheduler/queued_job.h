#ifndef SOFTLOOKUP_CORE_SCHEDULER_QUEUED_JOB_H_
#define SOFTLOOKUP_CORE_SCHEDULER_QUEUED_JOB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "core/scheduler/job.h"

namespace softlookup {

// The store number of jobs that belong to no store, such as Attends. Each of them runs in a batch
// of its own.
inline constexpr std::uint64_t kNoStore = 0;
// The store number of short jobs that belong to no store. Each of them runs in a batch of its own.
// The queue treats them as the jobs of one more store, so they do not wait behind the long jobs of
// kNoStore.
inline constexpr std::uint64_t kNoStoreShort = ~std::uint64_t{0};

inline bool IsStore(std::uint64_t store) { return store != kNoStore && store != kNoStoreShort; }

// A job, and what the queue has to know about it.
struct QueuedJob {
  // Number of the store whose rows the job scans, or kNoStore, or kNoStoreShort.
  std::uint64_t store = kNoStore;
  std::int64_t query_count = 1;
  // Whether this job may share a pass with other jobs of the store.
  bool shares_pass = true;
  // Estimated cost in multiply-adds (core/base/cost.h), without `reading_cost`.
  double cost = 0;
  // Cost of reading the store's rows. The jobs of a batch pay it once.
  double reading_cost = 0;
  // Longest expected time to the job's answer if other work waits before it. If the answer is
  // expected later, the job is refused, unless SchedulerOptions::stretch_max admits it.
  absl::Duration answer_time_max = absl::InfiniteDuration();
  absl::Time queued_at;  // Set when the job is submitted.
  std::unique_ptr<Job> job;
};

// Jobs that run together, in the order in which they were added. The jobs of a store share a pass.
// A job without a store, or whose `shares_pass` is false, is alone in its batch.
struct Batch {
  std::uint64_t store = kNoStore;
  std::vector<QueuedJob> jobs;
  double cost = 0;          // Cost of all jobs, and of reading the rows once.
  double reading_part = 0;  // The part of `cost`, in [0, 1], that is reading the rows.
  absl::Time begin;         // When the batch was taken from the queue.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_QUEUED_JOB_H_
