#ifndef SOFTLOOKUP_SERVER_CLUSTER_TASK_THREAD_H_
#define SOFTLOOKUP_SERVER_CLUSTER_TASK_THREAD_H_

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::server {

// Runs tasks one after another on a thread of its own: those that are posted, in that order, and
// one that is repeated. Thread-safe.
class TaskThread {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Runs `tick` whenever `interval` has passed since it last returned.
  TaskThread(Task tick, absl::Duration interval, const Clock& clock = Clock::Steady());
  // Runs the tasks that were posted before, and drops those that they post.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Has the thread run `task`. Does not wait for it.
  void Post(Task task);

 private:
  void Run();

  Task tick_;
  const absl::Duration interval_;
  const Clock& clock_;
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Declared last, because it uses the other members.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_TASK_THREAD_H_
