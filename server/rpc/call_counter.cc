#include "server/rpc/call_counter.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace softlookup::server {

void CallCounter::WaitUntilQuiet(absl::Duration quiet, absl::Time deadline) {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ == 0; };
  const auto busy = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ != 0; };
  absl::MutexLock lock(&mutex_);
  while (
      mutex_.AwaitWithDeadline(absl::Condition(&idle), deadline) &&
      mutex_.AwaitWithDeadline(absl::Condition(&busy), std::min(deadline, absl::Now() + quiet))) {
  }
}

}  // namespace softlookup::server
