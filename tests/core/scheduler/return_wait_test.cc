#include "core/scheduler/return_wait.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

constexpr absl::Duration kWait = absl::Microseconds(200);

class ReturnWaitTest : public ::testing::Test {
 protected:
  void Answer(std::int64_t answered_count, std::int64_t waiting_count = 0) {
    wait_.OnAnswers(answered_count, waiting_count, now_ + kWait);
  }

  absl::Time now_ = absl::UnixEpoch();
  ReturnWait wait_;
};

TEST_F(ReturnWaitTest, AwaitsNobodyAfterTheFirstBatch) {
  EXPECT_FALSE(wait_.Awaits(0));
  Answer(4);
  EXPECT_FALSE(wait_.Awaits(0));
}

TEST_F(ReturnWaitTest, AwaitsAsLargeAPartAsReturnedBefore) {
  Answer(4);
  for (int i = 0; i < 2; ++i) wait_.OnJob(now_);
  Answer(6, /*waiting_count=*/1);
  EXPECT_EQ(wait_.end(), now_ + kWait);
  EXPECT_TRUE(wait_.Awaits(3));
  EXPECT_FALSE(wait_.Awaits(4)) << "half of six have joined the one that waited";
}

TEST_F(ReturnWaitTest, MoreJobsThanWereAnsweredCountAsAll) {
  Answer(1);
  for (int i = 0; i < 5; ++i) wait_.OnJob(now_);
  Answer(2);
  EXPECT_TRUE(wait_.Awaits(1));
  EXPECT_FALSE(wait_.Awaits(2));
}

TEST_F(ReturnWaitTest, WhoReturnsAfterTheEndDoesNotCount) {
  Answer(2);
  wait_.OnJob(now_ + kWait);
  wait_.OnJob(now_ + 2 * kWait);
  Answer(2);
  EXPECT_TRUE(wait_.Awaits(0));
  EXPECT_FALSE(wait_.Awaits(1));
}

}  // namespace
}  // namespace softlookup
