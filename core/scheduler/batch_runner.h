#ifndef SOFTLOOKUP_CORE_SCHEDULER_BATCH_RUNNER_H_
#define SOFTLOOKUP_CORE_SCHEDULER_BATCH_RUNNER_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/parallel/fork_join_pool.h"
#include "core/scheduler/queued_job.h"

namespace softlookup {

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

// Takes the jobs of one batch through their steps: Prepare, one shared pass, and Finish.
// Thread-safe.
class BatchRunner {
 public:
  // `pool` and `clock` must outlive this object. Loops run on the calling thread and on idle
  // threads of `pool`.
  BatchRunner(ForkJoinPool& pool, const Clock& clock) : pool_(pool), clock_(clock) {}

  // Runs `jobs`, a batch that begins at `begin`. First prepares the jobs that are not cancelled.
  // Then finishes each job that has no pass, was cancelled, or failed in Prepare. Then runs one
  // pass for all other jobs, calls `before_answers`, and finishes these jobs. `answered_count` is
  // the number of jobs in the pass that were not cancelled. If no job is left for a pass, still
  // calls `before_answers`, with 0. Returns the cost of the jobs that succeeded, as a part of the
  // cost of all jobs, in [0, 1].
  double Run(absl::Span<QueuedJob> jobs, absl::Time begin,
             absl::FunctionRef<void(std::int64_t answered_count)> before_answers);

  const PassCounters& counters() const { return counters_; }

 private:
  // Adds the pass of the jobs `scanned`, which read `rows`, to counters_.
  void Count(absl::Span<QueuedJob* const> scanned, const ScannedRows& rows);

  ForkJoinPool& pool_;
  const Clock& clock_;
  PassCounters counters_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_BATCH_RUNNER_H_
