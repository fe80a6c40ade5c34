#ifndef SOFTLOOKUP_TESTS_CORE_SCHEDULER_TEST_JOB_H_
#define SOFTLOOKUP_TESTS_CORE_SCHEDULER_TEST_JOB_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/scheduler/job.h"

namespace softlookup {

// What became of jobs, in the order in which they ended.
class Endings {
 public:
  void Add(std::string ending) {
    absl::MutexLock lock(&mutex_);
    endings_.push_back(std::move(ending));
  }
  std::vector<std::string> all() const {
    absl::MutexLock lock(&mutex_);
    return endings_;
  }
  std::vector<std::string> Await(std::size_t count) const {
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return endings_.size() >= count;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&are_there));
    return endings_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> endings_ ABSL_GUARDED_BY(mutex_);
};

// A job that attends to no rows, or has no pass at all.
class TestJob final : public Job {
 public:
  TestJob(std::string name, Endings& endings) : name_(std::move(name)), endings_(endings) {}

  std::function<absl::Status()> prepare = [] { return absl::OkStatus(); };
  std::function<void()> on_finish = [] {};
  bool has_task = true;
  CancelToken token;

  void Refuse(absl::Status status) override { endings_.Add(Ending("refused", status)); }
  absl::Status Prepare() override { return prepare(); }
  const AttentionTask* task() const override { return has_task ? &task_ : nullptr; }
  const CancelToken& cancel() const override { return token; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override {
    times_ = times;
    on_finish();
    endings_.Add(answer.ok() ? name_ : Ending("failed", answer.status()));
  }

  const JobTimes& times() const { return times_; }

 private:
  std::string Ending(const char* what, const absl::Status& status) const {
    return name_ + " " + what + ": " + std::string(absl::StatusCodeToString(status.code()));
  }

  const std::string name_;
  Endings& endings_;
  const AttentionTask task_{};  // Without queries.
  JobTimes times_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_SCHEDULER_TEST_JOB_H_
