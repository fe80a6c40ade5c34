#ifndef SOFTLOOKUP_CORE_SCHEDULER_WAIT_BOUND_H_
#define SOFTLOOKUP_CORE_SCHEDULER_WAIT_BOUND_H_

#include <optional>

#include "absl/time/time.h"
#include "core/scheduler/queued_job.h"
#include "core/scheduler/work_rate.h"

namespace softlookup {

// Costs of the waiting work that is expected to run until a job has run.
struct WorkUntilAnswer {
  double before = 0;  // Cost of other waiting jobs that run before the job.
  double own = 0;     // Cost of the job. Includes reading, unless it joins a waiting batch.
};

// Returns nothing if the answer of `job` is expected in time, otherwise the time after which its
// caller should try again. An answer is in time within the job's answer_time_max, or within
// `stretch_max` times the time that the job takes alone. It is always in time if no work waits
// before the job. Does not read `job.job`.
std::optional<absl::Duration> RetryDelayOf(const QueuedJob& job, const WorkUntilAnswer& work,
                                           const WorkRate& rate, double stretch_max);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_WAIT_BOUND_H_
