#include "server/security/store_bytes_usage.h"

#include <gtest/gtest.h>

namespace softlookup::server {
namespace {

TEST(StoreBytesUsageTest, StoresGrowUpToTheLimit) {
  StoreBytesUsage usage;
  usage.Set(60, absl::UnixEpoch());
  EXPECT_FALSE(usage.TryGrow(41, 100));
  EXPECT_TRUE(usage.TryGrow(40, 100)) << "what was refused does not count";
  EXPECT_FALSE(usage.TryGrow(1, 100));
  EXPECT_TRUE(usage.TryGrow(1, 101)) << "the limit may have changed";
}

TEST(StoreBytesUsageTest, StoresAreCountedEachSecond) {
  absl::Time now = absl::UnixEpoch();
  StoreBytesUsage usage;
  EXPECT_TRUE(usage.NeedsCount(now)) << "the stores were never counted";
  usage.Set(100, now);
  EXPECT_FALSE(usage.NeedsCount(now));
  now += absl::Seconds(1) - absl::Nanoseconds(1);
  EXPECT_FALSE(usage.NeedsCount(now));
  now += absl::Nanoseconds(1);
  EXPECT_TRUE(usage.NeedsCount(now));
  usage.Set(10, now);
  EXPECT_FALSE(usage.NeedsCount(now));
  EXPECT_TRUE(usage.TryGrow(90, 100)) << "the new count replaces the growth since the old one";
}

}  // namespace
}  // namespace softlookup::server
