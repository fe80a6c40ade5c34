#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

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
    events_.push_back(std::make_unique<Event>(now_ + delay, count_++, std::move(event)));
    std::ranges::push_heap(events_, Event::IsLater);
  }
  // Runs all events up to `end`.
  void RunUntil(absl::Time end) {
    while (!events_.empty() && events_.front()->time <= end) {
      std::ranges::pop_heap(events_, Event::IsLater);
      const std::unique_ptr<Event> event = std::move(events_.back());
      events_.pop_back();
      now_ = event->time;
      event->act();
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
  struct Event {
    Event(absl::Time at, std::uint64_t event_number, absl::AnyInvocable<void()> what)
        : time(at), number(event_number), act(std::move(what)) {}
    static bool IsLater(const std::unique_ptr<Event>& a, const std::unique_ptr<Event>& b) {
      return a->time != b->time ? a->time > b->time : a->number > b->number;
    }

    const absl::Time time;
    const std::uint64_t number;  // Events of one time happen in the order of their numbers.
    absl::AnyInvocable<void()> act;
  };

  // In [0, 1). The distributions of the standard library differ from one library to another.
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
  absl::Time now_ = absl::UnixEpoch();
  std::uint64_t count_ = 0;                     // Of events that were added.
  std::vector<std::unique_ptr<Event>> events_;  // A heap; the next one is at the front.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_EVENT_LOOP_H_
