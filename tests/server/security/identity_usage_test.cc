#include "server/security/identity_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;

TEST(IdentityUsageTest, TheRatesAreTheIdentitysWhateverItNames) {
  const Identity identity{.name = "a", .limits = {.requests_per_second = 1}};
  absl::Time now = absl::UnixEpoch();
  IdentityUsage usage(now);
  EXPECT_THAT(usage.Take(identity, 1, 0, now), IsOk());
  const absl::Status refused = usage.Take(identity, 1, 0, now);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, "\"a\""));
  EXPECT_EQ(ReasonOf(refused), "IDENTITY_LIMIT");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  now += absl::Seconds(2);
  EXPECT_THAT(usage.Take(identity, 1, 0, now), IsOk());
}

}  // namespace
}  // namespace softlookup::server
