#include "server/limits/workers.h"

#include <utility>

#include "absl/time/time.h"
#include "core/base/error.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kWorkerRetryDelay = absl::Milliseconds(100);

}  // namespace

Workers::Workers(int thread_count, std::size_t tasks_max, std::size_t tasks_of_caller_max)
    : tasks_max_(tasks_max), tasks_of_caller_max_(tasks_of_caller_max) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Workers::Post(absl::string_view caller, Task task) {
  absl::MutexLock lock(&mutex_);
  const auto own = tasks_.find(caller);
  const std::size_t own_count = own == tasks_.end() ? 0 : own->second.size();
  if (task_count_ >= tasks_max_ || own_count >= tasks_of_caller_max_) {
    return WithRetryAfter(
        MakeError(reasons::kQueueFull, "Too many requests wait for the disk or are being read"),
        kWorkerRetryDelay);
  }
  Add(caller, std::move(task));
  return absl::OkStatus();
}

void Workers::PostNext(absl::string_view caller, Task task) {
  absl::MutexLock lock(&mutex_);
  Add(caller, std::move(task));
}

void Workers::Add(absl::string_view caller, Task task) {
  std::deque<Task>& own = tasks_[caller];
  if (own.empty()) turns_.emplace_back(caller);
  own.push_back(std::move(task));
  ++task_count_;
}

void Workers::Run() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || task_count_ > 0;
  };
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (task_count_ == 0) return;
      std::string caller = std::move(turns_.front());
      turns_.pop_front();
      const auto own = tasks_.find(caller);
      task = std::move(own->second.front());
      own->second.pop_front();
      --task_count_;
      if (own->second.empty()) {
        tasks_.erase(own);
      } else {
        turns_.push_back(std::move(caller));
      }
    }
    task();
  }
}

}  // namespace softlookup::server
