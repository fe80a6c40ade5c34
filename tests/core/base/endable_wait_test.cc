#include "core/base/endable_wait.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::StatusIs;

absl::Status Stopping() { return absl::UnavailableError("stopping"); }

TEST(EndableWaitTest, TheEndRunsTheCallback) {
  EndableWait wait;
  absl::Status end;
  wait.OnEnd([&](absl::Status status) { end = std::move(status); });
  wait.End(Stopping());
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, "stopping"));
}

TEST(EndableWaitTest, AWaitThatBeginsAfterTheEndEndsAtOnce) {
  EndableWait wait;
  wait.End(Stopping());
  wait.End(absl::CancelledError("later"));
  absl::Status end;
  wait.OnEnd([&](absl::Status status) { end = std::move(status); });
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, "stopping")) << "by the first end";
}

TEST(EndableWaitTest, AWaitEndsOnce) {
  EndableWait wait;
  int ends = 0;
  wait.OnEnd([&](const absl::Status&) { ++ends; });
  wait.End(Stopping());
  wait.End(Stopping());
  EXPECT_EQ(ends, 1);
}

TEST(EndableWaitTest, OnlyTheLastCallbackRuns) {
  EndableWait wait;
  int first = 0, second = 0;
  wait.OnEnd([&](const absl::Status&) { ++first; });
  wait.OnEnd([&](const absl::Status&) { ++second; });
  wait.End(Stopping());
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

}  // namespace
}  // namespace softlookup
