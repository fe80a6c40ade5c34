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

// The store of a job that shares its pass with no other job.
inline constexpr std::uint64_t kNoStore = 0;
// The same for a job that takes no time to speak of. It does not wait behind long ones.
inline constexpr std::uint64_t kNoStoreShort = ~std::uint64_t{0};

inline bool IsStore(std::uint64_t store) { return store != kNoStore && store != kNoStoreShort; }

// A job, and what the queue has to know of it.
struct QueuedJob {
  // Number of the store whose rows the job scans, or kNoStore, or kNoStoreShort.
  std::uint64_t store = kNoStore;
  std::int64_t query_count = 1;
  // Whether other jobs of the store may be in one pass with this one.
  bool shares_pass = true;
  // Estimated, in multiply-adds (core/base/cost.h).
  double cost = 0;
  // Cost of reading the store's rows. The jobs of a batch pay it once.
  double reading_cost = 0;
  // The job is refused if its answer is expected later than this and something waits before it, but
  // see JobQueueOptions::stretch_max.
  absl::Duration answer_time_max = absl::InfiniteDuration();
  absl::Time queued_at;
  std::unique_ptr<Job> job;
};

// Jobs that run together, in the order in which they came: those of one store, in one pass.
struct Batch {
  std::uint64_t store = kNoStore;
  std::vector<QueuedJob> jobs;
  // For the queue's accounts.
  double cost = 0;
  double reading_part = 0;  // Part of `cost` that is reading the rows.
  absl::Time begin;
  WorkRate::Run run;
};

struct JobQueueOptions {
  // A batch has at most this many queries, unless its first job alone has more.
  std::int64_t queries_max = 256;
  // Longest time a store's next batch waits for more lookups after a batch was answered. The wait
  // ends early when as many clients have returned as returned after the batch before, or when
  // waiting costs more than the shared pass saves. A lookup that finds no other client never waits.
  absl::Duration wait_max = absl::Milliseconds(5);
  // A job is admitted, whatever its answer_time_max, if it is expected to take at most
  // `stretch_max` times what it would take alone.
  double stretch_max = 4;
};

// Decides which jobs run next. Jobs of one store run as batches, one batch of a store at a time.
// Among the stores that have jobs waiting, the one that was served least so far is next, so that
// scans of a large store do not hold up those of small ones. Jobs without a store count as one more
// store, short ones as another, but do not wait for each other to end.
//
// The caller passes the time, which must not go back. Not thread-safe.
class JobQueue {
 public:
  explicit JobQueue(const JobQueueOptions& options) : options_(options) {}

  // Queues `job`, whatever waits already.
  void Add(QueuedJob job, absl::Time now);
  // Nothing if `job` may be added. Otherwise the time after which its caller should try again.
  std::optional<absl::Duration> Refusal(const QueuedJob& job) const;
  // The batch to run now, if any.
  std::optional<Batch> Take(absl::Time now);
  // Called when the answers of `batch` are about to go out, before Done. `answered_count` leaves
  // out jobs that were cancelled.
  void OnAnswers(const Batch& batch, std::int64_t answered_count, absl::Time now);
  // The batch has ended. `done_part` is the part of its cost that was done: below 1 if jobs were
  // cancelled.
  void Done(const Batch& batch, absl::Time now, double done_part);

  // When Take will have a batch, if nothing else happens. Infinite if it will not.
  absl::Time NextTime() const;

  std::int64_t size() const { return size_; }
  // Cost of all jobs that wait.
  double waiting_cost() const;

 private:
  struct Waiting {
    QueuedJob job;
    double cost = 0;  // What it adds to its line's waiting_cost.
  };
  // The jobs of one store.
  struct Line {
    std::deque<Waiting> jobs;
    std::int64_t query_count = 0;         // Of `jobs`.
    std::int64_t last_batch_queries = 0;  // Of the batch that the last job will be in.
    double waiting_cost = 0;
    int running_count = 0;             // Batches.
    std::int64_t queries_per_job = 0;  // Of the last batch, on average.
    // Jobs answered by the last batch, and jobs that have come since, until `return_until`.
    std::int64_t answered_count = 0;
    std::int64_t returned_count = 0;
    absl::Time return_until = absl::InfinitePast();
    // Until then, the next batch waits for so many jobs.
    std::int64_t awaited_count = 0;
    // Cost of the jobs served so far, without reading. A line that becomes busy starts at the
    // queue's `served_`, so that an idle store saves nothing up.
    double served = 0;
  };

  // When the next batch of the line may run.
  absl::Time ReadyTime(std::uint64_t store, const Line& line) const;
  // Queries that the job takes of a batch's.
  std::int64_t BatchQueries(const QueuedJob& job) const;
  // Whether the job would be in a batch with the last ones of the line.
  bool JoinsLast(const Line& line, const QueuedJob& job) const;

  const JobQueueOptions options_;
  std::map<std::uint64_t, Line> lines_;  // By store.
  std::int64_t size_ = 0;
  WorkRate rate_;
  double served_ = 0;  // The largest `served` of a line when it was chosen.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_QUEUE_H_
