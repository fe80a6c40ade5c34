#include "server/limits/reset_detector.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

constexpr std::uint64_t kCancelledMax = ResetDetector::kCancelledMax;

// A connection whose calls begin and end at once, at the time that the test sets.
class ResetDetectorTest : public ::testing::Test {
 protected:
  // Returns how often the connection must be cut while `count` calls are cancelled one by one.
  int Cancel(std::uint64_t count, bool is_late = false) {
    int cuts = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      resets_.MoveTo(now_);
      if (resets_.OnCancel(is_late)) ++cuts;
      resets_.OnEnd();
    }
    return cuts;
  }
  void Answer(std::uint64_t count) {
    resets_.MoveTo(now_);
    for (std::uint64_t i = 0; i < count; ++i) resets_.OnEnd();
  }

  absl::Time now_ = absl::UnixEpoch();
  ResetDetector resets_;
};

TEST_F(ResetDetectorTest, TooManyCancelledCallsWithinASecondAreFoundOnce) {
  EXPECT_EQ(Cancel(kCancelledMax), 0);
  now_ += absl::Milliseconds(999);
  EXPECT_EQ(Cancel(1), 1);
  EXPECT_EQ(Cancel(kCancelledMax), 0);
}

TEST_F(ResetDetectorTest, MoreLateCallsAreAllowed) {
  EXPECT_EQ(Cancel(ResetDetector::kCancelledOrLateMax, /*is_late=*/true), 0);
  EXPECT_EQ(Cancel(1, /*is_late=*/true), 1);
}

TEST_F(ResetDetectorTest, LateCallsLeaveTheLimitOfCancelledCallsAsItIs) {
  EXPECT_EQ(Cancel(kCancelledMax, /*is_late=*/true), 0);
  EXPECT_EQ(Cancel(kCancelledMax), 0);
  EXPECT_EQ(Cancel(1), 1);
}

TEST_F(ResetDetectorTest, EachSecondCountsForItself) {
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(Cancel(kCancelledMax), 0);
    now_ += absl::Seconds(1);
  }
}

TEST_F(ResetDetectorTest, NoMoreThanHalfOfManyCallsMayBeCancelled) {
  int cuts = 0;
  for (int i = 0; i < 100'000; ++i) {
    Answer(1);
    cuts += Cancel(1);
  }
  EXPECT_EQ(cuts, 0);
}

// One client of a proxy goes, and all its calls are cancelled. Calls of others were answered
// before.
TEST_F(ResetDetectorTest, ABurstOfFewAmongManyIsAllowed) {
  Answer(10'000);
  now_ += absl::Milliseconds(1500);
  EXPECT_EQ(Cancel(5000), 0);
}

TEST_F(ResetDetectorTest, AnswersOfTwoSecondsAgoDoNotCount) {
  Answer(1'000'000);
  now_ += absl::Seconds(2);
  EXPECT_EQ(Cancel(kCancelledMax + 1), 1);
}

TEST_F(ResetDetectorTest, IsIdleTwoSecondsAfterItsLastSecondBegan) {
  EXPECT_TRUE(resets_.IsIdle(now_)) << "it has counted nothing";
  Answer(1);
  EXPECT_FALSE(resets_.IsIdle(now_ + absl::Milliseconds(1999)));
  EXPECT_TRUE(resets_.IsIdle(now_ + absl::Seconds(2)));
}

}  // namespace
}  // namespace softlookup::server
