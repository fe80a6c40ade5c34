#ifndef SOFTLOOKUP_CORE_SCHEDULER_JOB_H_
#define SOFTLOOKUP_CORE_SCHEDULER_JOB_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_task.h"
#include "core/base/cancellation.h"

namespace softlookup {

// Where the time of a job went.
struct JobTimes {
  std::chrono::nanoseconds queue{0};    // In the scheduler's queue.
  std::chrono::nanoseconds compute{0};  // Prepare, and the whole pass that the job took part in.
};

// Work that the scheduler runs: a lookup, an Attend, the projection of an append's inputs.
//
// The scheduler calls either Refuse or Finish, once. Before Finish it calls Prepare, unless the job
// was cancelled. They may run on different threads, but not at the same time.
class Job {
 public:
  virtual ~Job() = default;

  // The job ends without having run. Submit calls it with QUEUE_FULL; whoever made the job may call
  // it before, with what is wrong.
  virtual void Refuse(absl::Status status) = 0;
  // Does what comes before the pass. If it returns an error, the job is left out of the pass, and
  // Finish gets the error.
  virtual absl::Status Prepare() = 0;
  // What the pass computes, after Prepare. Null if the job has no pass. It must stay valid until
  // Finish.
  virtual const AttentionTask* task() const = 0;
  virtual const CancelToken& cancel() const = 0;
  // Called last. `answer` is empty if the job has no pass. The job is destroyed soon afterwards.
  virtual void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_SCHEDULER_JOB_H_
