#ifndef SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_
#define SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/fixed_array.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace softlookup {

// A fixed set of threads for two patterns, both thread-safe:
//
//   ForkJoin  one loop whose iterations are independent. The caller takes part, idle threads help,
//             and it returns when all iterations are done. Each thread begins with a part of its
//             own, the same in every loop of as many iterations: what it read there is near it.
//   Post      one task, later. Tasks start in order, each when a thread is free or has only a loop
//             to help with: a long loop keeps its caller, and nobody waits for it.
//
// Who has just worked, and finds nothing to do or waits for a helper's last iteration, looks on for
// 100 us before it sleeps, and lets any other thread run meanwhile: waking it would take as long.
//
// A task may call ForkJoin. It does not nest loops inside iterations, or grow.
class ForkJoinPool {
 public:
  // Starts `thread_count` >= 1 threads. At most `waiting_tasks_max` posted tasks wait at a time.
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
  // One thread's part of a loop.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  struct Loop {
    Loop(absl::FunctionRef<void(std::int64_t)> body, std::int64_t count, int share_count);

    // Takes an iteration of the `own` share, or, if none is left there, of another one; false if
    // there is none.
    bool Step(int own);

    const absl::FunctionRef<void(std::int64_t)> body;
    absl::FixedArray<Share, 8> shares;
    std::atomic<int> helper_count{0};  // Changes under mutex_.
  };

  void ThreadMain(int number);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !loops_.empty() || !tasks_.empty();
  }
  // Takes a loop off, if it is still there.
  void RemoveLoop(Loop* loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::int64_t waiting_tasks_max_;
  absl::Mutex mutex_;
  std::deque<Loop*> loops_ ABSL_GUARDED_BY(mutex_);  // Those that may have iterations left.
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_tasks_{false};  // For helpers, between iterations ...
  std::atomic<bool> has_loops_{false};  // ... and for who has nothing to do.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_PARALLEL_FORK_JOIN_POOL_H_
