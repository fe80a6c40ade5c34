#ifndef SOFTLOOKUP_SERVER_LIMITS_WORKERS_H_
#define SOFTLOOKUP_SERVER_LIMITS_WORKERS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::server {

// Threads for tasks that would occupy the network threads for too long: waiting for a disk, parsing
// large messages, reading many rows. (SingleTask runs what may take minutes.) Callers take turns,
// one task each. So a caller with many tasks delays the next task of another caller by its tasks in
// progress and at most one more. Thread-safe.
class Workers {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Post() lets at most `tasks_max` tasks wait, and at most `tasks_of_caller_max` of one caller.
  Workers(int thread_count, std::size_t tasks_max, std::size_t tasks_of_caller_max);
  // Runs all waiting tasks, then joins the threads.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `task` on a thread, in the turn of `caller`. QUEUE_FULL, and the task is dropped, if too
  // many tasks wait, or too many of `caller`.
  absl::Status Post(absl::string_view caller, Task task);
  // Like Post(), but never refuses. For tasks of a stream: the stream would have to end if one of
  // them were refused. The stream must have no other task waiting here, so that each stream adds at
  // most one task.
  void PostNext(absl::string_view caller, Task task);

 private:
  void Add(absl::string_view caller, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const std::size_t tasks_max_;
  const std::size_t tasks_of_caller_max_;

  absl::Mutex mutex_;
  // The waiting tasks by caller. Has no caller without tasks.
  absl::flat_hash_map<std::string, std::deque<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
  // Callers with waiting tasks, in the order of their turns.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  std::size_t task_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Waiting tasks of all callers.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_WORKERS_H_
