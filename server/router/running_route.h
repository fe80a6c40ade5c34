#ifndef SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_
#define SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/router/route.h"

namespace softlookup::server {

// The Route that a client waits for, which ends if the client cancels. Thread-safe.
class RunningRoute {
 public:
  // The client waits for `route` from now on. If it has cancelled already, ends `route`.
  void Set(const std::shared_ptr<Route>& route) {
    bool is_cancelled = false;
    {
      absl::MutexLock lock(&mutex_);
      route_ = route;
      is_cancelled = is_cancelled_;
    }
    if (is_cancelled) route->Cancel();
  }
  // The client has cancelled.
  void Cancel() {
    std::shared_ptr<Route> route;
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
      route = route_;
    }
    if (route != nullptr) route->Cancel();
  }

 private:
  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Route> route_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RUNNING_ROUTE_H_
