#include "core/parallel/fork_join_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/steady_time.h"

namespace softlookup {
namespace {

// How long a thread polls before it sleeps. Waking a sleeping thread takes about as long.
constexpr absl::Duration kLinger = absl::Microseconds(100);

// Polls until happened() is true, for at most kLinger. Yields to other threads between polls.
template <typename Happened>
void Linger(const Happened& happened) {
  const absl::Time end = SteadyNow() + kLinger;
  while (!happened() && SteadyNow() < end) std::this_thread::yield();
}

// The number of this thread in its pool: the share with which the thread begins a loop. Threads
// outside any pool have 0, like the first thread of a pool.
thread_local int thread_number = 0;

}  // namespace

ForkJoinPool::ForkJoinPool(int thread_count, std::int64_t waiting_tasks_max)
    : waiting_tasks_max_(waiting_tasks_max) {
  SOFTLOOKUP_CHECK(thread_count >= 1) << thread_count << " threads";
  threads_.reserve(thread_count);
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this, i] { ThreadMain(i); });
}

ForkJoinPool::~ForkJoinPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(loops_.empty() && tasks_.empty())
      << loops_.size() << " loops and " << tasks_.size() << " tasks are left";
}

bool ForkJoinPool::Loop::Step(int own) {
  const std::optional<std::int64_t> i = shares.Take(own);
  if (i) body(*i);
  return i.has_value();
}

void ForkJoinPool::ForkJoin(std::int64_t count, absl::FunctionRef<void(std::int64_t)> body) {
  if (count <= 1) {
    if (count == 1) body(0);
    return;
  }
  Loop loop{.body = body,
            .shares{count, static_cast<int>(std::min<std::int64_t>(count, thread_count()))}};
  {
    absl::MutexLock lock(&mutex_);
    loops_.push_back(&loop);
    has_loops_ = true;
  }
  while (loop.Step(thread_number)) {
  }
  const auto no_helper = [&loop] { return loop.helper_count == 0; };
  Linger(no_helper);
  absl::MutexLock lock(&mutex_);
  // No thread joins the loop after RemoveLoop(). Await() waits for the helpers that joined before.
  RemoveLoop(&loop);
  mutex_.Await(absl::Condition(&no_helper));
}

void ForkJoinPool::RemoveLoop(Loop* loop) {
  loops_.erase(std::remove(loops_.begin(), loops_.end(), loop), loops_.end());
  has_loops_ = !loops_.empty();
}

bool ForkJoinPool::Post(absl::AnyInvocable<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (static_cast<std::int64_t>(tasks_.size()) >= waiting_tasks_max_) return false;
  tasks_.push_back(std::move(task));
  has_tasks_ = true;
  return true;
}

void ForkJoinPool::ThreadMain(int number) {
  thread_number = number;
  mutex_.Lock();
  bool has_worked = false;
  for (;;) {
    if (has_worked && !HasWork()) {
      mutex_.Unlock();
      Linger([this] { return has_tasks_ || has_loops_; });
      mutex_.Lock();
    }
    mutex_.Await(absl::Condition(this, &ForkJoinPool::HasWork));
    has_worked = true;
    if (!tasks_.empty()) {
      absl::AnyInvocable<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      has_tasks_ = !tasks_.empty();
      mutex_.Unlock();
      task();
      task = nullptr;
      mutex_.Lock();
    } else if (!loops_.empty()) {
      Loop* loop = loops_.front();
      ++loop->helper_count;
      mutex_.Unlock();
      bool has_more = true;
      while (has_more && !has_tasks_.load(std::memory_order_relaxed)) has_more = loop->Step(number);
      mutex_.Lock();
      SOFTLOOKUP_DCHECK(loop->helper_count > 0);
      --loop->helper_count;
      if (!has_more) RemoveLoop(loop);
    } else {
      break;  // The pool is stopping, and no task or loop is left.
    }
  }
  mutex_.Unlock();
}

}  // namespace softlookup
