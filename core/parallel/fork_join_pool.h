#ifndef SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_
#define SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "core/parallel/loop_shares.h"

namespace softlookup {

// Decides what each of a fixed set of threads does next: a task that waits, or else help with a
// loop. Thread-safe.
//
//   ForkJoin  runs a loop whose iterations are independent. The caller takes part and idle threads
//             help. ForkJoin returns when all iterations are done.
//   Post      runs one task later. Tasks start in the order of their posting. When a task waits,
//             the threads that help with a loop leave it after the current iteration to start the
//             task. Only a loop's caller stays to the end.
//
// Loops and tasks share one lock: a thread that leaves a loop, or that sleeps, has to see both.
//
// A thread that runs out of work, or waits for a helper's last iteration, polls for 100 us before
// it sleeps. Waking a sleeping thread takes about as long. A polling thread yields to other
// threads.
//
// Tasks and iterations may call ForkJoin. A thread that does so in an iteration starts no waiting
// task before that inner loop ends. The number of threads never changes.
class ForkJoinPool {
 public:
  // Starts `thread_count` threads, at least 1. Post() refuses a task while `waiting_tasks_max`
  // other tasks wait to start.
  ForkJoinPool(int thread_count, std::int64_t waiting_tasks_max);

  // Runs the tasks that still wait, then stops the threads.
  ~ForkJoinPool();

  ForkJoinPool(const ForkJoinPool&) = delete;
  ForkJoinPool& operator=(const ForkJoinPool&) = delete;

  // Calls body(i) once for every i in [0, count), each on some thread.
  void ForkJoin(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body);

  // Queues `task` and returns true, or returns false if the queue is full.
  bool Post(absl::AnyInvocable<void()> task);

  int thread_count() const { return static_cast<int>(threads_.size()); }

 private:
  struct Loop {
    // Runs the iteration that shares.Take(own) returns. Returns false, and runs none, if all
    // iterations have been taken.
    bool Step(int own);

    const absl::FunctionRef<void(std::int64_t)> body;
    LoopShares shares;
    // Threads in the loop besides its caller. Changed only under mutex_.
    std::atomic<int> helper_count{0};
  };

  void ThreadMain(int number);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !loops_.empty() || !tasks_.empty();
  }
  // Removes `loop` from loops_ if it is still there.
  void RemoveLoop(Loop* loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t waiting_tasks_max_;
  absl::Mutex mutex_;
  std::deque<Loop*> loops_ ABSL_GUARDED_BY(mutex_);  // Loops that may have iterations left.
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  // Whether tasks_ and loops_ have elements. Changed only under mutex_. Threads that poll, and
  // helpers between two iterations, read these flags without the lock.
  std::atomic<bool> has_tasks_{false};
  std::atomic<bool> has_loops_{false};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_
