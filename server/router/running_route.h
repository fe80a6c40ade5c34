#ifndef SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_
#define SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/router/routed_call.h"

namespace softlookup::server {

// The RoutedCall that a client waits for, which ends if the client cancels. Thread-safe.
class RunningRoute {
 public:
  // The client waits for `routed` from now on. If it has cancelled already, ends `routed`.
  void Set(const std::shared_ptr<RoutedCall>& routed) {
    bool is_cancelled = false;
    {
      absl::MutexLock lock(&mutex_);
      routed_ = routed;
      is_cancelled = is_cancelled_;
    }
    if (is_cancelled) routed->Cancel();
  }
  // The client has cancelled.
  void Cancel() {
    std::shared_ptr<RoutedCall> routed;
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
      routed = routed_;
    }
    if (routed != nullptr) routed->Cancel();
  }

 private:
  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<RoutedCall> routed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_
