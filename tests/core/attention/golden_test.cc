// The float64 cases of tests/golden, in the core.
#include "tests/testing/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/attention/test_rows.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::GoldenLookup;
using ::softlookup::testing::IsOk;
using ::softlookup::testing::ReadGoldenLookups;
using ::softlookup::testing::RelativeError;

TEST(GoldenTest, HoldsInTheCore) {
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    SCOPED_TRACE(golden.name);
    TestRows rows(golden.row_count, golden.key_dim, golden.value_dim, golden.keys, golden.values);
    if (!golden.allowed.empty()) rows.Allow(golden.allowed);
    auto options = ResolveOptions(golden.options, Score::kScaledDot, 1, Limits());
    ASSERT_THAT(options, IsOk());
    options->weights = WeightsMode::kAll;
    for (const auto unit : Units()) {
      AttentionTask task = rows.Task(golden.queries, *options, golden.num_heads);
      task.tiles = unit;
      const AttentionAnswer answer = MustAttend(task);
      EXPECT_LE(RelativeError(answer.values, golden.expected_values), 1e-5);
      ASSERT_EQ(answer.stats.size(), golden.expected_stats.size());
      for (std::size_t i = 0; i < answer.stats.size(); ++i) {
        const QueryStats& expected = golden.expected_stats[i];
        EXPECT_EQ(answer.stats[i].counted_rows, expected.counted_rows);
        if (std::isinf(expected.max_logit)) {
          EXPECT_EQ(answer.stats[i].max_logit, expected.max_logit);
        } else {
          EXPECT_NEAR(answer.stats[i].max_logit, expected.max_logit, 1e-5);
        }
        if (std::isinf(expected.log_sum_exp)) {
          EXPECT_EQ(answer.stats[i].log_sum_exp, expected.log_sum_exp);
        } else {
          EXPECT_NEAR(answer.stats[i].log_sum_exp, expected.log_sum_exp, 1e-5);
        }
        EXPECT_NEAR(answer.stats[i].entropy, expected.entropy, 1e-5);
        EXPECT_EQ(answer.weights[i].rows.size(), expected.counted_rows);
        EXPECT_EQ(answer.weights[i].remaining_weight, 0);
        EXPECT_LE(
            RelativeError(Dense(answer.weights[i], golden.row_count), golden.expected_weights[i]),
            1e-5);
      }
    }
  }
}

// The float64 answer over the rows as they are kept.
TEST(GoldenTest, HoldsInEveryStorageTypeForTheRowsThatItKeeps) {
  for (const GoldenLookup& golden : ReadGoldenLookups()) {
    SCOPED_TRACE(golden.name);
    auto options = ResolveOptions(golden.options, Score::kScaledDot, 1, Limits());
    ASSERT_THAT(options, IsOk());
    for (const StorageType storage : {StorageType::kBfloat16, StorageType::kInt8}) {
      TestRows rows(golden.row_count, golden.key_dim, golden.value_dim, golden.keys, golden.values,
                    storage);
      if (!golden.allowed.empty()) rows.Allow(golden.allowed);
      AttentionTask task = rows.Task(golden.queries, *options, golden.num_heads);
      const ReferenceAnswer expected = rows.Reference(task, golden.allowed);
      for (const auto unit : Units()) {
        task.tiles = unit;
        const AttentionAnswer answer = MustAttend(task);
        EXPECT_LE(RelativeError(answer.values, expected.values), 1e-5);
        ASSERT_EQ(answer.stats.size(), expected.stats.size());
        for (std::size_t i = 0; i < answer.stats.size(); ++i) {
          EXPECT_EQ(answer.stats[i].counted_rows, expected.stats[i].counted_rows);
          if (std::isinf(expected.stats[i].log_sum_exp)) {
            EXPECT_EQ(answer.stats[i].log_sum_exp, expected.stats[i].log_sum_exp);
          } else {
            EXPECT_NEAR(answer.stats[i].log_sum_exp, expected.stats[i].log_sum_exp, 1e-5);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace softlookup
