#include "server/cluster/task_thread.h"

#include <utility>

namespace softlookup::server {

TaskThread::TaskThread(Task tick, absl::Duration interval, const Clock& clock)
    : tick_(std::move(tick)), interval_(interval), clock_(clock), thread_([this] { Run(); }) {}

TaskThread::~TaskThread() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void TaskThread::Post(Task task) {
  absl::MutexLock lock(&mutex_);
  if (!ending_) tasks_.push_back(std::move(task));
}

void TaskThread::Run() {
  absl::Time next_tick = clock_.Now() + interval_;
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || !tasks_.empty();
  };
  while (true) {
    std::deque<Task> tasks;
    bool ending = false;
    {
      absl::MutexLock lock(&mutex_);
      clock_.AwaitUntil(mutex_, absl::Condition(&has_work), next_tick);
      tasks = std::exchange(tasks_, {});
      ending = ending_;
    }
    for (Task& task : tasks) task();
    if (ending) return;
    if (clock_.Now() < next_tick) continue;
    tick_();
    next_tick = clock_.Now() + interval_;
  }
}

}  // namespace softlookup::server
