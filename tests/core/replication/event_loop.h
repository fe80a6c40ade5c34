#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_

#include <cstdint>
#include <map>
#include <random>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace softlookup::testing {

// A clock, and what is to happen, in the order of its times. All randomness of a history is drawn
// here, so a seed gives one history.
class EventLoop final : public Clock {
 public:
  explicit EventLoop(std::uint64_t seed) : random_(seed) {}

  absl::Time Now() const override { return now_; }
  // Nothing waits in a simulation.
  void AwaitUntil(absl::Mutex&, const absl::Condition&, absl::Time) const override {}

  void After(absl::Duration delay, absl::AnyInvocable<void()> event) {
    events_.emplace(std::pair(now_ + delay, count_++), std::move(event));
  }
  // Runs all events up to `end`.
  void RunUntil(absl::Time end) {
    while (!events_.empty() && events_.begin()->first.first <= end) {
      auto node = events_.extract(events_.begin());
      now_ = node.key().first;
      node.mapped()();
    }
    now_ = end;
  }

  // Whether something of this probability happens.
  bool Happens(double probability) { return Uniform() < probability; }
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(Uniform() * static_cast<double>(bound));
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + Uniform() * (high - low);
  }

 private:
  // In [0, 1). The distributions of the standard library differ from one library to another.
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
  absl::Time now_ = absl::UnixEpoch();
  std::uint64_t count_ = 0;  // Events of one time happen in the order in which they were added.
  std::map<std::pair<absl::Time, std::uint64_t>, absl::AnyInvocable<void()>> events_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_
