#include "core/base/cancellation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/status/status.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

// The error with which a server that stops ends waits.
absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

TEST(CancelTokenTest, TheEndOfAWaitLeavesRunningWorkAlone) {
  CancelToken token;
  absl::Status end;
  token.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  token.EndWait(Stopping());
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, "stopping"));
  EXPECT_THAT(token.Check(), IsOk());
  token.Cancel();
  EXPECT_THAT(token.Check(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, AWaitThatBeginsAfterItsEndEndsAtOnce) {
  CancelToken ended, cancelled;
  ended.EndWait(Stopping());
  cancelled.Cancel();
  absl::Status end;
  ended.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, ""));
  cancelled.OnWaitEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, AWaitEndsOnce) {
  CancelToken token;
  int ends = 0;
  token.OnWaitEnd([&](const absl::Status&) { ++ends; });
  token.EndWait(Stopping());
  token.EndWait(Stopping());
  token.Cancel();
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace softlookup
