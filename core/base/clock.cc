#include "core/base/clock.h"

#include "core/base/steady_time.h"

namespace softlookup {
namespace {

class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override { return SteadyNow(); }
  void AwaitUntil(absl::Mutex& mutex, const absl::Condition& condition,
                  absl::Time deadline) const override {
    mutex.AwaitWithTimeout(condition, deadline - SteadyNow());
  }
};

}  // namespace

void Clock::SleepUntil(absl::Time time) const {
  const bool never = false;
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  AwaitUntil(mutex, absl::Condition(&never), time);
}

const Clock& Clock::Steady() {
  static const SteadyClock clock;
  return clock;
}

}  // namespace softlookup
