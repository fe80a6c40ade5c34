#include "server/limits/token_buckets.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

const absl::Time kBegin = absl::UnixEpoch();

TEST(TokenBucketsTest, ARefusalTakesNothing) {
  const Rates rates{.requests_per_second = 2, .rows_per_second = 10};
  TokenBuckets buckets(kBegin);
  EXPECT_FALSE(buckets.Take(rates, 1, 10, kBegin));
  const auto refusal = buckets.Take(rates, 1, 5, kBegin);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->what, "rows");
  EXPECT_EQ(refusal->rate, 10);
  EXPECT_EQ(refusal->wait, absl::Milliseconds(500));
  EXPECT_FALSE(buckets.Take(rates, 1, 0, kBegin)) << "the second request is left";
}

TEST(TokenBucketsTest, AreFullAfterASecond) {
  const Rates rates{.requests_per_second = 2};
  TokenBuckets buckets(kBegin);
  EXPECT_TRUE(buckets.IsFull(kBegin));
  EXPECT_FALSE(buckets.Take(rates, 2, 0, kBegin));
  EXPECT_FALSE(buckets.IsFull(kBegin + absl::Milliseconds(999)));
  EXPECT_TRUE(buckets.IsFull(kBegin + absl::Seconds(1)));
}

}  // namespace
}  // namespace softlookup::server
