#ifndef SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_PROCESS_H_
#define SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_PROCESS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "tests/core/replication/event_loop.h"

namespace softlookup::testing {

// The one thread of a process, and the clock that it reads. The thread stands still at times, as
// one of a suspended process or of a stalled machine does: right before or after a reading of the
// clock much time passes, and what reached the process meanwhile comes at once afterwards, in any
// order.
class SimulatedProcess final : public Clock {
 public:
  using Work = absl::AnyInvocable<void()>;

  // `stops` counts how often the thread has stopped, if it is not null.
  explicit SimulatedProcess(EventLoop& loop, std::int64_t* stops = nullptr)
      : loop_(loop), stops_(stops) {}

  absl::Time Now() const override;
  // Nothing waits in a simulation.
  void AwaitUntil(absl::Mutex&, const absl::Condition&, absl::Time) const override {}

  // Lets the thread read the clock `readings` times. At the next reading it stands still for
  // `time`.
  void StandStill(int readings, absl::Duration time);

  // Does what reaches the process from outside, as soon as the thread goes on.
  void Receive(Work work);
  // Does what leaves the process, as soon as the thread goes on. The simulation cannot interrupt
  // the thread: it runs on to the end of what it was doing. Messages to others wait here. What it
  // does to its disk and tells its clients is there early, as if it had stopped a little later.
  void Send(Work work);

 private:
  bool IsStill() const { return loop_.Now() < goes_on_; }
  // Adds work that waits for the thread.
  void Keep(std::vector<Work>& works, Work work);
  void GoOnLater();
  void GoOn();

  EventLoop& loop_;
  std::int64_t* const stops_;
  // Reading the clock stops the thread, so Now() changes these two.
  mutable int readings_left_ = -1;                     // Until it stops. Negative: it does not.
  mutable absl::Time goes_on_ = absl::InfinitePast();  // After it has stopped.
  absl::Duration still_time_;
  std::vector<Work> sent_;  // These two since the thread stands still.
  std::vector<Work> received_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CORE_REPLICATION_SIMULATED_PROCESS_H_
