#ifndef SOFTLOOKUP_SERVER_BASE_SINGLE_TASK_H_
#define SOFTLOOKUP_SERVER_BASE_SINGLE_TASK_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Runs tasks that may take minutes, one at a time, each on a thread of its own. Such a task would
// keep one of the Workers from all other calls for too long. Thread-safe.
class SingleTask {
 public:
  using Finish = absl::AnyInvocable<void()>;
  // Does the work. Returns what to run after it.
  using Work = absl::AnyInvocable<Finish()>;

  SingleTask() = default;
  // Waits until the last task has ended.
  ~SingleTask();
  SingleTask(const SingleTask&) = delete;
  SingleTask& operator=(const SingleTask&) = delete;

  // Returns false if a task is in progress. Else returns true, and the caller must call Run() next.
  bool Claim();
  // Runs `work` on a thread of its own, then the function that `work` returns. Claim() returns true
  // again once `work` has returned. So a caller that hears of the end from that function can start
  // the next task. The next Run() waits until that function has returned: it must be quick, and
  // must not call Run() itself.
  void Run(Work work);

 private:
  absl::Mutex mutex_;
  bool claimed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // Runs, or has run, the last task.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_SINGLE_TASK_H_
