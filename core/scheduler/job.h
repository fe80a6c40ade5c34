#ifndef SOFTLOOKUP_CORE_SCHEDULER_JOB_H_
#define SOFTLOOKUP_CORE_SCHEDULER_JOB_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"

namespace softlookup {

// How long a job waited, and how long it ran.
struct JobTimes {
  // From the submission of the job to the start of its batch.
  std::chrono::nanoseconds queue{0};
  // From the start of the batch to the end of the job's pass. If the job took part in no pass: to
  // the call of Finish.
  std::chrono::nanoseconds compute{0};
};

// Work that the scheduler runs: a lookup, an Attend, a projection, a selection of rows.
//
// The scheduler calls either Refuse or Finish, once. Before Finish it calls Prepare, unless
// cancel().Check() returns an error then. These calls can come on different threads, but not at the
// same time.
class Job {
 public:
  virtual ~Job() = default;

  // Ends the job with the error `status`, without running it. Submit calls this with QUEUE_FULL.
  // The job's maker may call it with another error instead of submitting the job.
  virtual void Refuse(absl::Status status) = 0;
  // Does the part of the work that comes before the pass, or all of it if the job has no pass. If
  // Prepare returns an error, the job is left out of the pass, and Finish gets the error.
  virtual absl::Status Prepare() = 0;
  // Returns what the pass has to compute, or null if the job has no pass. Called after Prepare has
  // returned OK. The task must stay valid until Finish.
  virtual const AttentionTask* task() const = 0;
  // Returns the token that tells whether the job was cancelled or its deadline has passed.
  virtual const CancelToken& cancel() const = 0;
  // Ends the job with its answer or an error. Called last; the job is destroyed soon afterwards.
  // `answer` is an empty AttentionAnswer if the job has no pass.
  virtual void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_H_
