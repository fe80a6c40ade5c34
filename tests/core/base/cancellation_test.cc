#include "core/base/cancellation.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

TEST(CancelTokenTest, TheEndOfAWaitLeavesWorkThatRunsAlone) {
  CancelToken token;
  token.wait().End(absl::UnavailableError("stopping"));
  EXPECT_THAT(token.Check(), IsOk());
  token.Cancel();
  EXPECT_THAT(token.Check(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, CancelEndsTheWaitOnce) {
  CancelToken token;
  int ends = 0;
  absl::Status end;
  token.wait().OnEnd([&](absl::Status status) {
    ++ends;
    end = std::move(status);
  });
  token.Cancel();
  token.Cancel();
  EXPECT_EQ(ends, 1);
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, AWaitThatBeginsAfterCancelEndsAtOnce) {
  CancelToken token;
  token.Cancel();
  absl::Status end;
  token.wait().OnEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(CancelTokenTest, ADeadlineThatHasPassedIsTheReason) {
  CancelToken token(absl::Now() - absl::Seconds(1));
  EXPECT_THAT(token.Check(), StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  absl::Status end;
  token.wait().OnEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, IsOk()) << "the deadline alone does not end the wait";
  token.Cancel();
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

}  // namespace
}  // namespace softlookup
