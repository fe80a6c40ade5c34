#include "server/limits/tenant_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;

// Limits whose clock is told.
class TenantLimitsTest : public ::testing::Test {
 protected:
  absl::Status Take(TenantLimits& limits, const std::string& store, std::int64_t rows = 1) {
    return limits.Take(store, rows, now_);
  }
  // How many requests of `rows` go through now.
  int CountTaken(TenantLimits& limits, const std::string& store, std::int64_t rows = 1) {
    int count = 0;
    while (count < 1000 && Take(limits, store, rows).ok()) ++count;
    return count;
  }

  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(TenantLimitsTest, AreOffByDefault) {
  TenantLimits limits({});
  EXPECT_EQ(CountTaken(limits, "acme/users", 1'000'000), 1000);
}

TEST_F(TenantLimitsTest, ASecondsRequestsAreABurstAndThenComeEvenly) {
  TenantLimits limits({.requests_per_second = 10});
  EXPECT_EQ(CountTaken(limits, "acme/users"), 10);
  const absl::Status refused = Take(limits, "acme/items");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "TENANT_RATE");
  EXPECT_THAT(MetadataOf(refused), ::testing::Contains(std::pair("tenant", "acme")));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*RetryAfterOf(refused)), 100, 1);
  EXPECT_EQ(CountTaken(limits, "other/users"), 10) << "each tenant has its own";
  now_ += absl::Milliseconds(301);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 3);
  now_ += absl::Hours(1);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 10) << "no more than a second is saved up";
}

TEST_F(TenantLimitsTest, ARateMayBeLessThanOneASecond) {
  TenantLimits limits({.requests_per_second = 0.1});
  EXPECT_EQ(CountTaken(limits, "acme/users"), 1);
  now_ += absl::Seconds(9.9);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 0);
  now_ += absl::Seconds(0.2);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 1);
}

TEST_F(TenantLimitsTest, ANameWithoutASlashIsATenant) {
  TenantLimits limits({.requests_per_second = 5});
  EXPECT_EQ(CountTaken(limits, "users"), 5);
  EXPECT_EQ(CountTaken(limits, "users/of/others"), 0);
  EXPECT_EQ(CountTaken(limits, "user"), 5);
}

TEST_F(TenantLimitsTest, ATenantIsANameUpToItsFirstSlash) {
  EXPECT_EQ(TenantLimits::TenantOf("acme/users/old"), "acme");
  EXPECT_EQ(TenantLimits::TenantOf("users"), "users");
  EXPECT_EQ(TenantLimits::TenantOf(""), "");
}

TEST_F(TenantLimitsTest, RowsAreCountedToo) {
  TenantLimits limits({.requests_per_second = 100, .rows_per_second = 1000});
  EXPECT_EQ(CountTaken(limits, "acme/users", 300), 3);
  EXPECT_THAT(Take(limits, "acme/users", 0), IsOk()) << "it brings none";
  now_ += absl::Milliseconds(201);
  EXPECT_THAT(Take(limits, "acme/users", 300), IsOk());
}

TEST_F(TenantLimitsTest, OneOfMoreRowsThanASecondBringsIsPaidForAfterwards) {
  TenantLimits limits({.rows_per_second = 100});
  EXPECT_THAT(Take(limits, "acme/users", 1000), IsOk());
  now_ += absl::Seconds(8);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 0);
  now_ += absl::Milliseconds(1500);
  EXPECT_EQ(CountTaken(limits, "acme/users"), 50);
  const absl::Status refused = Take(limits, "acme/users", 1000);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*RetryAfterOf(refused)), 1000, 1);
}

TEST_F(TenantLimitsTest, AWaitThatIsKeptIsEnough) {
  TenantLimits limits({.requests_per_second = 7, .rows_per_second = 90});
  for (int i = 0; i < 200; ++i) {
    const std::int64_t rows = 1 + i * 37 % 200;
    const absl::Status status = Take(limits, "acme/users", rows);
    if (status.ok()) continue;
    now_ += *RetryAfterOf(status) + absl::Nanoseconds(10);
    const absl::Status again = Take(limits, "acme/users", rows);
    // The requests were waited for; the rows may be still to wait for, once.
    if (!again.ok()) now_ += *RetryAfterOf(again) + absl::Nanoseconds(10);
    ASSERT_TRUE(again.ok() || Take(limits, "acme/users", rows).ok()) << i;
  }
}

TEST_F(TenantLimitsTest, OnlySoManyTenantsAreRemembered) {
  TenantLimits limits({.requests_per_second = 1}, /*tenants_max=*/100);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += Take(limits, std::to_string(i) + "/s").ok() ? 1 : 0;
  EXPECT_EQ(taken, 101) << "a hundred, and one share for all others";
  EXPECT_EQ(CountTaken(limits, "7/s"), 0);
  now_ += absl::Seconds(2);  // Idle ones are forgotten.
  EXPECT_EQ(CountTaken(limits, "new/s"), 1);
  EXPECT_EQ(CountTaken(limits, "newer/s"), 1);
}

TEST_F(TenantLimitsTest, WhatIsNoNameTakesLittleMemory) {
  TenantLimits limits({.requests_per_second = 1});
  EXPECT_EQ(CountTaken(limits, std::string(10'000'000, 'a')), 1);
  EXPECT_EQ(CountTaken(limits, std::string(20'000'000, 'a')), 0) << "only its beginning counts";
}

}  // namespace
}  // namespace softlookup::server
