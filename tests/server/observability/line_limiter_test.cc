#include "server/observability/line_limiter.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/time/time.h"

namespace softlookup::server {
namespace {

TEST(LineLimiterTest, LetsSoManyThroughASecondAndSaysHowManyItLeftOut) {
  LineLimiter limiter(2);
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(limiter.Allow(start), 0);
  EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(1)), 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(500)), std::nullopt);
  }
  EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(1000)), 5);
  EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(1001)), 0);
  EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(1002)), std::nullopt);
  // The machine's clock was set back.
  EXPECT_EQ(limiter.Allow(start - absl::Hours(1)), 1);
  EXPECT_EQ(limiter.Allow(start - absl::Hours(1)), 0);
  EXPECT_EQ(limiter.Allow(start - absl::Hours(1)), std::nullopt);
  EXPECT_EQ(limiter.TakeLeftOut(), 1);
  EXPECT_EQ(limiter.TakeLeftOut(), 0);
}

}  // namespace
}  // namespace softlookup::server
