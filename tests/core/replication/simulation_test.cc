#include "tests/core/replication/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "tests/testing/sanitized.h"

namespace softlookup::testing {
namespace {

using ::testing::IsEmpty;

// SOFTLOOKUP_SEED replays one history, and SOFTLOOKUP_HISTORIES asks for more of them.
std::uint64_t NumberFrom(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  std::uint64_t number = otherwise;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

TEST(ReplicationSimulationTest, NoHistoryBreaksAnInvariant) {
  const std::uint64_t first = NumberFrom("SOFTLOOKUP_SEED", 1);
  const std::uint64_t count = NumberFrom("SOFTLOOKUP_HISTORIES", kSanitized ? 30 : 150);
  HistoryReport sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const HistoryReport report = RunHistory(seed);
    ASSERT_THAT(report.violations, IsEmpty()) << "SOFTLOOKUP_SEED=" << seed;
    sum.proposed += report.proposed;
    sum.acknowledged += report.acknowledged;
    sum.unknown += report.unknown;
    sum.refused += report.refused;
    sum.elections += report.elections;
    sum.crashes += report.crashes;
    sum.seeded += report.seeded;
    sum.config_changes += report.config_changes;
  }
  std::cout << sum.proposed << " proposed, " << sum.acknowledged << " acknowledged, " << sum.unknown
            << " unknown, " << sum.refused << " refused, " << sum.elections << " elections, "
            << sum.crashes << " crashes, " << sum.seeded << " seeded, " << sum.config_changes
            << " configurations\n";
  if (count < 100) return;
  // A run in which too little happens proves nothing.
  const auto histories = static_cast<std::int64_t>(count);
  EXPECT_GT(sum.acknowledged, 10 * histories);
  EXPECT_GT(sum.unknown, 0);
  EXPECT_GT(sum.refused, 0);
  EXPECT_GT(sum.elections, histories);
  EXPECT_GT(sum.crashes, histories);
  EXPECT_GT(sum.config_changes, histories);
}

}  // namespace
}  // namespace softlookup::testing
