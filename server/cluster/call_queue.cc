#include "server/cluster/call_queue.h"

#include "server/base/queue_event.h"

namespace softlookup::server {

CallQueue::~CallQueue() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  thread_.join();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

grpc::CompletionQueue* CallQueue::ForOneCall() {
  absl::MutexLock lock(&mutex_);
  ++in_progress_;
  return &queue_;
}

void CallQueue::Run() {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_progress_ > 0 || is_ending_;
  };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (in_progress_ == 0) return;
    }
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return;
    {
      absl::MutexLock lock(&mutex_);
      --in_progress_;
    }
    static_cast<QueueEvent*>(tag)->OnEvent(ok);
  }
}

}  // namespace softlookup::server
