#ifndef SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
#define SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/scheduler/job.h"
#include "core/scheduler/work_rate.h"

namespace softlookup {

// The store number of jobs that belong to no store, such as Attends. Each of them runs in a batch
// of its own.
inline constexpr std::uint64_t kNoStore = 0;
// The store number of short jobs that belong to no store. Each of them runs in a batch of its own.
// The queue treats them as those of one more store, so they do not wait behind the long jobs of
// kNoStore.
inline constexpr std::uint64_t kNoStoreShort = ~std::uint64_t{0};

inline bool IsStore(std::uint64_t store) { return store != kNoStore && store != kNoStoreShort; }

// A job, and what the queue has to know about it.
struct QueuedJob {
  // Number of the store whose rows the job scans, or kNoStore, or kNoStoreShort.
  std::uint64_t store = kNoStore;
  std::int64_t query_count = 1;
  // Whether other jobs of the store may be in one pass with this one.
  bool shares_pass = true;
  // Estimated cost in multiply-adds (core/base/cost.h), without `reading_cost`.
  double cost = 0;
  // Cost of reading the store's rows. The jobs of a batch pay it once.
  double reading_cost = 0;
  // Longest expected time to the job's answer if other work waits before it. If the answer is
  // expected later, the job is refused, unless JobQueueOptions::stretch_max admits it.
  absl::Duration answer_time_max = absl::InfiniteDuration();
  absl::Time queued_at;  // Set when the job is submitted.
  std::unique_ptr<Job> job;
};

// Jobs that run together, in the order in which they were added. The jobs of a store share a pass.
// A job without a store, or whose `shares_pass` is false, is alone in its batch.
struct Batch {
  std::uint64_t store = kNoStore;
  std::vector<QueuedJob> jobs;
  // The members below are for the queue's accounts.
  double cost = 0;
  double reading_part = 0;  // The part of `cost`, in [0, 1], that is reading the rows.
  absl::Time begin;
  WorkRate::Run run;
};

struct JobQueueOptions {
  // A batch has at most this many queries, unless its first job alone has more.
  std::int64_t queries_max = 256;
  // Longest time a store's next batch waits for more lookups after a batch was answered. The wait
  // ends early once as large a part of the clients has returned as after the previous batch, or
  // once waiting costs more than the shared pass saves. A lookup that finds no other client never
  // waits.
  absl::Duration wait_max = absl::Milliseconds(5);
  // A job is admitted, whatever its answer_time_max, if its answer is expected within `stretch_max`
  // times the time that the job would take alone.
  double stretch_max = 4;
};

// Decides which jobs run next. Jobs of one store run as batches, one batch of a store at a time.
// Among the stores that have jobs waiting, the one that was served least so far is next, so that
// scans of a large store do not hold up those of small ones. Jobs without a store count as one more
// store, and short jobs without a store as another. Several batches of such jobs may run at a time.
//
// The caller passes the current time, which must not go back. Not thread-safe.
class JobQueue {
 public:
  explicit JobQueue(const JobQueueOptions& options) : options_(options) {}

  // Queues `job`, even if Refusal() would refuse it.
  void Add(QueuedJob job, absl::Time now);
  // Returns nothing if `job` may be added, otherwise the time after which its caller should try
  // again. `job.job` may be null.
  std::optional<absl::Duration> Refusal(const QueuedJob& job) const;
  // Returns the batch to run now, if any.
  std::optional<Batch> Take(absl::Time now);
  // Notes that the answers of `batch` are about to be sent, so that clients may return with more
  // jobs. Call this before Done. `answered_count` is the number of jobs that took part in the pass
  // and were not cancelled.
  void OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now);
  // Notes that `batch` has ended. Until then, Take returns no other batch of its store.
  // `done_part`, in [0, 1], is the part of the batch's cost that was done. It is below 1 if jobs
  // failed or were cancelled.
  void Done(const Batch& batch, absl::Time now, double done_part);

  // Returns the time from which Take has a batch, if the queue does not change before. The time is
  // not after now if Take has a batch now. It is the infinite future if Take has none before the
  // next Add() or Done().
  absl::Time NextTime() const;

  std::int64_t size() const { return size_; }
  // Returns the cost of all waiting jobs.
  double waiting_cost() const;

 private:
  struct Waiting {
    QueuedJob job;
    double cost = 0;  // What the job adds to its line's waiting_cost.
  };
  // The waiting jobs of one store, and what is known about its batches.
  struct Line {
    std::deque<Waiting> jobs;
    std::int64_t query_count = 0;         // Sum of BatchQueries over `jobs`.
    std::int64_t last_batch_queries = 0;  // Queries of the batch that the last job will be in.
    double waiting_cost = 0;
    int running_count = 0;             // Batches of the line that run.
    std::int64_t queries_per_job = 0;  // Average of the batch that was taken last.
    // The last batch that sent its answers sent `answered_count`. Since then, `returned_count` jobs
    // were added, not counting those after `return_until`.
    std::int64_t answered_count = 0;
    std::int64_t returned_count = 0;
    absl::Time return_until = absl::InfinitePast();
    // The next batch may run when this many jobs wait, when it has no room for one more, or at
    // `return_until`.
    std::int64_t awaited_count = 0;
    // Cost of the jobs served so far, without reading. When a job is added to a line without
    // waiting jobs, this is raised to the queue's `served_` if it is below. So a store gains
    // nothing by being idle.
    double served = 0;
  };

  // Returns the time from which the next batch of the line may run. It is the infinite future if no
  // job waits, or while a batch of the same store runs.
  absl::Time ReadyTime(std::uint64_t store, const Line& line) const;
  // Returns how many of a batch's queries the job takes up: all of them if it shares no pass.
  std::int64_t BatchQueries(const QueuedJob& job) const;
  // Returns whether the job would be in a batch with the last job of the line.
  bool JoinsLast(const Line& line, const QueuedJob& job) const;

  const JobQueueOptions options_;
  std::map<std::uint64_t, Line> lines_;  // By store.
  std::int64_t size_ = 0;
  WorkRate rate_;
  double served_ = 0;  // The largest `served` that a line had when Take chose it.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
