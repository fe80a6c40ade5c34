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

// Threads for what would keep gRPC's from their work: waiting for a disk, parsing large messages,
// looking through many rows. Callers take turns, so one with many tasks keeps another waiting for
// no longer than the tasks in progress. Thread-safe.
class Workers {
 public:
  using Task = absl::AnyInvocable<void()>;

  // At most `tasks_max` wait, and `tasks_of_caller_max` of one caller.
  Workers(int thread_count, std::size_t tasks_max, std::size_t tasks_of_caller_max);
  // Runs what waits, then ends.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Has a thread run `task`. QUEUE_FULL, and it is not run, if too many wait.
  absl::Status Post(absl::string_view caller, Task task);
  // The same, however many wait: for who was let in before, and has no other task here.
  void PostNext(absl::string_view caller, Task task);

 private:
  void Add(absl::string_view caller, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const std::size_t tasks_max_;
  const std::size_t tasks_of_caller_max_;

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::deque<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);  // Callers with tasks, the next first.
  std::size_t task_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_LIMITS_WORKERS_H_
