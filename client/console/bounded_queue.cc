#include "client/console/bounded_queue.h"

#include <utility>

namespace softlookup::console {

BoundedQueue::BoundedQueue(std::size_t thread_count, std::size_t waiting_max)
    : waiting_max_(waiting_max) {
  for (std::size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { RunTasks(); });
}

void BoundedQueue::enqueue(std::function<void()> task) {
  const auto has_place = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiting_.size() < waiting_max_;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_place));
  waiting_.push_back(std::move(task));
}

void BoundedQueue::shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void BoundedQueue::RunTasks() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  };
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace softlookup::console
