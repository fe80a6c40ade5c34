#include "core/scheduler/work_rate.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

TEST(WorkRateTest, FollowsTheWorkOfLate) {
  WorkRate rate;
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 60; ++i) {
    const WorkRate::Run run = rate.Begin(now);
    now += absl::Milliseconds(100);
    rate.End(run, /*cost=*/1e8, /*done=*/1e8, now);
    now += absl::Hours(1);  // Idle time does not count.
  }
  EXPECT_NEAR(absl::ToDoubleSeconds(rate.TimeOf(1e9)), 1, 0.01);
}

#ifdef SOFTLOOKUP_DCHECKS
TEST(WorkRateDeathTest, TimeMustNotGoBack) {
  WorkRate rate;
  const absl::Time now = absl::UnixEpoch();
  const WorkRate::Run run = rate.Begin(now);
  EXPECT_DEATH(rate.End(run, 1, 1, now - absl::Seconds(1)), "comes before");
}
#endif

}  // namespace
}  // namespace softlookup
