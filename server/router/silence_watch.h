#ifndef SOFTLOOKUP_SERVER_ROUTER_SILENCE_WATCH_H_
#define SOFTLOOKUP_SERVER_ROUTER_SILENCE_WATCH_H_

#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace softlookup::server {

class RoutedCall;

// Tells calls that have waited for kTime. Costs them less than an alarm each. Thread-safe.
class SilenceWatch {
 public:
  static constexpr absl::Duration kTime = absl::Seconds(1);

  // Lets RoutedCall::OnTime() be called in kTime, if the call lives then.
  void Add(std::weak_ptr<RoutedCall> call);
  // Tells the calls whose time has come. Call this about ten times a second, on one thread.
  void Tick();

 private:
  absl::Mutex mutex_;
  // With the steady clock's times at which they are told.
  std::deque<std::pair<absl::Time, std::weak_ptr<RoutedCall>>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_SILENCE_WATCH_H_
