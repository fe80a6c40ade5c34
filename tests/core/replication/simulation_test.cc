#include "tests/core/replication/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "tests/testing/random.h"
#include "tests/testing/sanitized.h"

namespace softlookup::testing {
namespace {

using ::testing::IsEmpty;

TEST(ReplicationSimulationTest, NoHistoryBreaksAnInvariant) {
  const std::uint64_t first = FirstSeed();
  const std::int64_t count = kSanitized ? 100 : 500;
  HistoryReport sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const HistoryReport report = RunHistory(seed);
    ASSERT_THAT(report.violations, IsEmpty()) << "SOFTLOOKUP_TEST_SEED=" << seed;
    sum.Add(report);
  }
  std::cout << sum << "\n";
  // A run in which too little happens proves nothing.
  EXPECT_GT(sum.acknowledged, 10 * count);
  EXPECT_GT(sum.unknown, 0);
  EXPECT_GT(sum.refused, 0);
  EXPECT_GT(sum.elections, count);
  EXPECT_GT(sum.crashes, count);
  EXPECT_GT(sum.stops, count);
  EXPECT_GT(sum.config_changes, count / 2);
}

TEST(ReplicationSimulationTest, ASeedReplays) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const HistoryReport first = RunHistory(seed);
    EXPECT_EQ(RunHistory(seed), first);
    EXPECT_NE(RunHistory(seed + 1), first);
  }
}

}  // namespace
}  // namespace softlookup::testing
