#include "server/rpc/revision_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

const absl::Time kBegin = absl::FromUnixSeconds(1'000'000);

TEST(EndOfRevisionWaitTest, IsAfterTheMaximumUnlessTheDeadlineComesFirst) {
  for (const absl::Duration left : {absl::Minutes(2), absl::InfiniteDuration()}) {
    const RevisionWaitEnd end = EndOfRevisionWait(kBegin, absl::Seconds(60), kBegin + left);
    EXPECT_EQ(end.time, kBegin + absl::Seconds(60));
    EXPECT_THAT(end.status, StatusIs(absl::StatusCode::kDeadlineExceeded, "for 1m at most"));
    EXPECT_EQ(ReasonOf(end.status), "DEADLINE_EXCEEDED");
  }
}

TEST(EndOfRevisionWaitTest, LeavesTimeForTheErrorToArriveBeforeTheDeadline) {
  for (const absl::Duration wait_max : {absl::Seconds(60), absl::InfiniteDuration()}) {
    const auto end_of = [&](absl::Duration left) {
      const RevisionWaitEnd end = EndOfRevisionWait(kBegin, wait_max, kBegin + left);
      EXPECT_THAT(end.status, StatusIs(absl::StatusCode::kDeadlineExceeded, "about to pass"));
      EXPECT_EQ(ReasonOf(end.status), "DEADLINE_EXCEEDED");
      return end.time - kBegin;
    };
    EXPECT_EQ(end_of(absl::Seconds(10)), absl::Milliseconds(9750));
    EXPECT_EQ(end_of(absl::Milliseconds(100)), absl::Milliseconds(90));
    EXPECT_EQ(end_of(absl::ZeroDuration()), absl::ZeroDuration());
    EXPECT_EQ(end_of(-absl::Seconds(1)), absl::ZeroDuration());
  }
}

TEST(EndOfRevisionWaitTest, ComesNeverWithoutMaximumAndDeadline) {
  const RevisionWaitEnd end =
      EndOfRevisionWait(kBegin, absl::InfiniteDuration(), absl::InfiniteFuture());
  EXPECT_EQ(end.time, absl::InfiniteFuture());
  EXPECT_THAT(end.status, IsOk());
}

}  // namespace
}  // namespace softlookup::server
