#ifndef SOFTLOOKUP_TESTS_CORE_ENGINE_TICKING_CLOCK_H_
#define SOFTLOOKUP_TESTS_CORE_ENGINE_TICKING_CLOCK_H_

#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::testing {

// Goes on by `tick` whenever it is read, and notes for how long it is awaited, which takes no time.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(absl::Duration tick) : tick_(tick) {}
  absl::Time Now() const override { return now_ += tick_; }
  void AwaitUntil(absl::Mutex&, const absl::Condition&, absl::Time deadline) const override {
    waits.push_back(deadline - now_);
  }
  mutable std::vector<absl::Duration> waits;

 private:
  const absl::Duration tick_;
  mutable absl::Time now_ = absl::UnixEpoch();
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_ENGINE_TICKING_CLOCK_H_
