#include "server/limits/heap_trim.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr absl::Time kStart = absl::UnixEpoch();

TEST(TrimScheduleTest, IsDueOnceTheProcessHasGrown) {
  TrimSchedule schedule(30 * kMiB);
  EXPECT_FALSE(schedule.IsDue(30 * kMiB, kStart));
  EXPECT_FALSE(schedule.IsDue(61 * kMiB, kStart));
  EXPECT_TRUE(schedule.IsDue(62 * kMiB, kStart));
}

TEST(TrimScheduleTest, ABurstBeforeTheFirstLookCountsAsGrowth) {
  TrimSchedule schedule(30 * kMiB);
  EXPECT_TRUE(schedule.IsDue(130 * kMiB, kStart));
}

TEST(TrimScheduleTest, TriesAgainWhereWhatIsInUseMayHaveBeenFreedSince) {
  TrimSchedule schedule(30 * kMiB);
  schedule.OnTrimmed(130 * kMiB, 130 * kMiB, kStart);
  EXPECT_FALSE(schedule.IsDue(130 * kMiB, kStart + absl::Milliseconds(999)));
  EXPECT_TRUE(schedule.IsDue(130 * kMiB, kStart + absl::Seconds(1)));
  schedule.OnTrimmed(130 * kMiB, 40 * kMiB, kStart + absl::Seconds(1));
  EXPECT_FALSE(schedule.IsDue(40 * kMiB, kStart + absl::Hours(1)));
}

TEST(TrimScheduleTest, TriesLessAndLessOftenWhileItGainsNothing) {
  TrimSchedule schedule(30 * kMiB);
  absl::Time now = kStart;
  int trims = 0;
  for (; now < kStart + absl::Minutes(60); now += absl::Seconds(1)) {
    if (!schedule.IsDue(1000 * kMiB, now)) continue;
    schedule.OnTrimmed(1000 * kMiB, 1000 * kMiB, now);
    ++trims;
  }
  EXPECT_GE(trims, 50);
  EXPECT_LE(trims, 70);
  EXPECT_TRUE(schedule.IsDue(1032 * kMiB, now)) << "it has grown again";
}

}  // namespace
}  // namespace softlookup::server
