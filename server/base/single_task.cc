#include "server/base/single_task.h"

#include <utility>

#include "core/base/check.h"

namespace softlookup::server {

SingleTask::~SingleTask() {
  std::thread last;
  {
    absl::MutexLock lock(&mutex_);
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

bool SingleTask::Claim() {
  absl::MutexLock lock(&mutex_);
  return !std::exchange(claimed_, true);
}

void SingleTask::Run(Work work) {
  auto task = [this, work = std::move(work)]() mutable {
    Finish finish = work();
    {
      absl::MutexLock lock(&mutex_);
      claimed_ = false;
    }
    finish();
  };
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(claimed_) << "Run() without Claim()";
  if (thread_.joinable()) thread_.join();  // At most its Finish still runs.
  thread_ = std::thread(std::move(task));
}

}  // namespace softlookup::server
