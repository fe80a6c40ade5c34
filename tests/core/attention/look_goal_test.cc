// Which rows a look keeps because they are listed, besides those that weigh much.
#include "core/attention/look_goal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/merged_parts.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using testing::NormalFloats;

// Looks keep the rows of the whole answer's list in each of its parts.
TEST(LookGoalTest, PartialAnswersHaveTheRowsOfLists) {
  const TestRows rows = RowsOfKeys(NormalFloats(2 * kLookRows * kLookDim, 1));
  const std::vector<float> query = NormalFloats(kLookDim, 3);
  for (const Mode mode : {Mode::kHard, Mode::kSoft}) {
    const AttentionTask task = rows.Task(query, {.score = Score::kDot,
                                                 .temperature = 0.1,
                                                 .mode = mode,
                                                 .weights = WeightsMode::kTop,
                                                 .top_weights = 20});
    ASSERT_NO_FATAL_FAILURE(
        ExpectSameAnswer(AttendInParts(task, RangesBetween({kLookRows})), MustAttend(task)));
    EXPECT_GT(ReadsOf(PartOf(task, {.begin = kLookRows})).sketched_rows, 0u);
  }
}

TEST(LookGoalTest, AListOfFilteredRowsReadsNoMoreThanTheirPanels) {
  constexpr std::int64_t kFirst = 11'000, kCount = 200;
  const std::vector<float> keys = KeysByCluster();
  TestRows rows = RowsOfKeys(keys);
  std::vector<bool> allowed(keys.size() / kLookDim);
  std::fill_n(allowed.begin() + kFirst, kCount, true);
  rows.Allow(allowed);
  const std::vector<float> query(keys.begin() + kFirst * kLookDim,
                                 keys.begin() + (kFirst + 1) * kLookDim);
  for (const Mode mode : {Mode::kSoft, Mode::kHard}) {
    for (const std::int64_t count : {1, 10, 1000}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(mode) << " " << count);
      const AttentionTask task = rows.Task(query, {.score = Score::kCosine,
                                                   .temperature = 0.01,
                                                   .mode = mode,
                                                   .weights = WeightsMode::kTop,
                                                   .top_weights = count});
      ExpectRightAnswer(rows, task, allowed);
      EXPECT_LE(ReadsOf(task).rows, static_cast<std::uint64_t>(kernels::kBlockRowsMax));
    }
  }
}

// With the default error bound, at most 1.5e-6 of the mass may be left out: 13.4 nats, and 2.8 more
// for rows at the middle of the range, beside a 16th of all rows at its end.
TEST(LookGoalTest, RowsAreLeftOutOnlyOfAWideRangeOfLogits) {
  const auto can = [](double lowest, double highest, std::uint64_t row_count,
                      double max_error = 0) {
    return CanLeaveOut({.max_error = max_error}, {.weighs_all = true, .sums_values = true},
                       {.lowest = lowest, .highest = highest}, row_count);
  };
  EXPECT_FALSE(can(-16, 16, 1000));
  EXPECT_TRUE(can(-16.5, 16.5, 1000));
  // Distances: the range ends at 0.
  EXPECT_FALSE(can(-32, 0, 1000));
  EXPECT_TRUE(can(-33, 0, 1000));
  // So many rows of the lowest logit weigh too much.
  EXPECT_TRUE(can(-16.5, 16.5, 100'000'000));
  EXPECT_FALSE(can(-16.5, 16.5, 1'000'000'000));
  // A larger error lets 8.3 nats be enough.
  EXPECT_FALSE(can(-11, 11, 1000, 1e-3));
  EXPECT_TRUE(can(-11.5, 11.5, 1000, 1e-3));
}

// The weights of all rows but the best are too small for a mass to tell them apart.
TEST(LookGoalTest, AListOfRowsFarBelowTheBestEndsWithTheSample) {
  const std::vector<float> keys = NormalFloats(20 * kernels::kBlockRowsMax * kLookDim, 5);
  const TestRows rows = RowsOfKeys(keys);
  const std::vector<float> query(keys.begin() + 5000 * kLookDim, keys.begin() + 5001 * kLookDim);
  const AttentionTask task = rows.Task(query, {.score = Score::kCosine,
                                               .temperature = 1e-4,
                                               .weights = WeightsMode::kTop,
                                               .top_weights = 10});
  ExpectRightAnswer(rows, task);
  EXPECT_EQ(ReadsOf(task).sketched_rows, 0u);
}

}  // namespace
}  // namespace softlookup
