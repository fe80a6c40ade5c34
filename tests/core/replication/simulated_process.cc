#include "tests/core/replication/simulated_process.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace softlookup::testing {

absl::Time SimulatedProcess::Now() const {
  const absl::Time now = std::max(loop_.Now(), goes_on_);
  if (readings_left_ < 0 || readings_left_-- > 0) return now;
  goes_on_ = now + still_time_;
  if (stops_ != nullptr) ++*stops_;
  // What is done next may rest on a time that is long past.
  return loop_.Happens(0.5) ? now : goes_on_;
}

void SimulatedProcess::StandStill(int readings, absl::Duration time) {
  readings_left_ = readings;
  still_time_ = time;
}

void SimulatedProcess::Receive(Work work) {
  if (!IsStill()) return work();
  Keep(received_, std::move(work));
}

void SimulatedProcess::Send(Work work) {
  if (!IsStill()) return work();
  Keep(sent_, std::move(work));
}

void SimulatedProcess::Keep(std::vector<Work>& works, Work work) {
  if (sent_.empty() && received_.empty()) GoOnLater();
  works.push_back(std::move(work));
}

void SimulatedProcess::GoOnLater() {
  loop_.After(goes_on_ - loop_.Now(), [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) GoOn();
  });
}

void SimulatedProcess::GoOn() {
  if (IsStill()) return GoOnLater();  // It has stopped again at this very time.
  for (Work& work : std::exchange(sent_, {})) work();
  std::vector<Work> works = std::exchange(received_, {});
  if (loop_.Happens(0.5)) {
    for (std::size_t i = works.size(); i > 1; --i) {
      std::swap(works[i - 1],
                works[static_cast<std::size_t>(loop_.Below(static_cast<std::int64_t>(i)))]);
    }
  }
  const std::weak_ptr alive(alive_);
  for (Work& work : works) {
    if (alive.expired()) return;  // The process has ended in the last one.
    Receive(std::move(work));     // It may stop again.
  }
}

}  // namespace softlookup::testing
