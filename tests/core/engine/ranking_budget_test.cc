#include "core/engine/ranking_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "core/attention/shared_pass.h"
#include "core/attention/top_rows.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::int64_t kRows = 100'000;
constexpr std::int64_t kLimit = std::int64_t{32} << 20;

class RankingBudgetTest : public ::testing::Test {
 protected:
  RankingBudgetTest() {
    blocks_[0].view.row_count = kRows;
    task_.blocks = blocks_;
    task_.end = kRows;
  }

  absl::StatusOr<RankingBudget::Taken> Take(std::uint64_t top_k, std::int64_t query_count) {
    task_.options.top_k = top_k;
    return ranking_budget_.Take(task_, query_count);
  }

  std::vector<PositionedBlock> blocks_ = std::vector<PositionedBlock>(1);
  AttentionTask task_;
  ByteBudget budget_{kLimit};
  RankingBudget ranking_budget_{kLimit, budget_};
};

TEST_F(RankingBudgetTest, CountsInTheBudgetForAsLongAsItIsTaken) {
  {
    const auto taken = Take(1000, 2);
    ASSERT_THAT(taken, IsOk());
    const std::int64_t bytes = 2 * TopRows::BytesMax(1000);
    EXPECT_THAT(budget_.Check(kLimit - bytes, 0), IsOk());
    EXPECT_EQ(ReasonOf(budget_.Check(kLimit - bytes + 1, 0)), "MEMORY_LIMIT");
  }
  EXPECT_THAT(budget_.Check(kLimit, 0), IsOk());
}

TEST_F(RankingBudgetTest, QueriesThatAreTakenOneAfterAnotherAreCountedOnce) {
  std::vector<RankingBudget::Taken> taken;
  while (true) {
    auto next = Take(kRows - 1, 4096);
    if (!next.ok()) {
      EXPECT_EQ(ReasonOf(next.status()), "QUEUE_FULL");
      EXPECT_NE(RetryAfterOf(next.status()), std::nullopt);
      break;
    }
    taken.push_back(*std::move(next));
  }
  const std::int64_t lane_bytes = TopRows::BytesMax(kRows - 1);
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(
                              kLimit / (lane_bytes * (kCollectorBytesMax / lane_bytes + 1))));
  EXPECT_GE(taken.size(), 2u);
  taken.pop_back();
  EXPECT_THAT(Take(kRows - 1, 4096), IsOk());
}

TEST_F(RankingBudgetTest, WhatAllCouldNotHoldIsTheCallersError) {
  blocks_[0].view.row_count = 20 * kRows;
  task_.end = 20 * kRows;
  const auto refused = Take(20 * kRows - 1, 2);
  EXPECT_EQ(ReasonOf(refused.status()), "LIMIT_EXCEEDED");
  EXPECT_EQ(RetryAfterOf(refused.status()), std::nullopt);
  EXPECT_THAT(MetadataOf(refused.status()), Contains(Pair("field", "options.top_k")));
  EXPECT_THAT(refused.status().message(), HasSubstr("keeping 1999999 rows takes "));
}

TEST_F(RankingBudgetTest, NoMoreRowsAreKeptThanThereAre) {
  EXPECT_THAT(Take(std::uint64_t{1} << 63, 1), IsOk());
  EXPECT_THAT(Take(0, 4096), IsOk());
}

}  // namespace
}  // namespace softlookup
