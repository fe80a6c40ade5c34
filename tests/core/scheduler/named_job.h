#ifndef SOFTLOOKUP_TESTS_CORE_SCHEDULER_NAMED_JOB_H_
#define SOFTLOOKUP_TESTS_CORE_SCHEDULER_NAMED_JOB_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/scheduler/queued_job.h"

namespace softlookup {

// A job that a queue only moves about.
class NamedJob final : public Job {
 public:
  explicit NamedJob(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  void Refuse(absl::Status) override {}
  absl::Status Prepare() override { return absl::OkStatus(); }
  const AttentionTask* task() const override { return nullptr; }
  const CancelToken& cancel() const override { return cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer>, const JobTimes&) override {}

 private:
  const std::string name_;
  const CancelToken cancel_;
};

// Returns `job` with a NamedJob.
inline QueuedJob Named(std::string name, QueuedJob job) {
  job.job = std::make_unique<NamedJob>(std::move(name));
  return job;
}

// Returns the names of the batch's jobs, which must be NamedJobs.
inline std::vector<std::string> NamesOf(const Batch& batch) {
  std::vector<std::string> names;
  for (const QueuedJob& job : batch.jobs) {
    names.push_back(static_cast<const NamedJob&>(*job.job).name());
  }
  return names;
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_SCHEDULER_NAMED_JOB_H_
