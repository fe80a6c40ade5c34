#include "softlookup/partial_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/golden.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::softlookup::testing::RelativeError;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kKeyDim = 8, kValueDim = 12, kHeads = 4, kQueries = 5;
constexpr std::size_t kTop = 6;

// A store whose rows are also spread over three stores, one for each range of them.
class Ranges {
 public:
  Ranges() {
    const std::vector<float> keys = NormalFloats(kRows * kKeyDim, 1);
    const std::vector<float> values = NormalFloats(kRows * kValueDim, 2);
    for (std::size_t i = 0; i + 1 < std::size(kBounds); ++i) {
      const std::int64_t begin = kBounds[i], end = kBounds[i + 1];
      const auto slice = [&](const std::vector<float>& all, std::int64_t dim) {
        return std::vector<float>(all.begin() + begin * dim, all.begin() + end * dim);
      };
      ranges_.push_back(std::make_unique<TestRows>(end - begin, kKeyDim, kValueDim,
                                                   slice(keys, kKeyDim), slice(values, kValueDim)));
    }
    whole_ = std::make_unique<TestRows>(kRows, kKeyDim, kValueDim, keys, values);
  }

  const TestRows& whole() const { return *whole_; }

  // The partial answers of all ranges, merged in order.
  std::vector<PartialAnswer> Merged(const ResolvedOptions& options, Mode merge_mode) const {
    std::vector<PartialAnswer> merged;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      AttentionTask task = ranges_[i]->Task(queries_, options, kHeads);
      task.age_end = kRows - kBounds[i];
      task.partial_base_position = kBounds[i];
      const AttentionAnswer answer = MustAttend(task);
      EXPECT_THAT(answer.values, IsEmpty());
      if (i == 0) {
        merged = answer.partials;
        continue;
      }
      for (std::size_t q = 0; q < merged.size(); ++q) {
        Merge(merge_mode, answer.partials[q], kTop, merged[q]);
      }
    }
    return merged;
  }

  const std::vector<float>& queries() const { return queries_; }

  static constexpr std::int64_t kRows = 2500;

 private:
  static constexpr std::int64_t kBounds[] = {0, 700, 1800, kRows};
  const std::vector<float> queries_ = NormalFloats(kQueries * kKeyDim, 3);
  std::vector<std::unique_ptr<TestRows>> ranges_;
  std::unique_ptr<TestRows> whole_;
};

TEST(PartialAnswerTest, RangesMergeIntoTheAnswerOverAllRows) {
  const Ranges ranges;
  for (const Mode mode : {Mode::kSoft, Mode::kLinear}) {
    for (const double ln_decay : {0.0, -0.003}) {
      const ResolvedOptions options{.temperature = 0.5,
                                    .mode = mode,
                                    .ln_decay = ln_decay,
                                    .weights = WeightsMode::kTop,
                                    .top_weights = kTop};
      const AttentionTask whole = ranges.whole().Task(ranges.queries(), options, kHeads);
      const AttentionAnswer expected = MustAttend(whole);
      const std::vector<PartialAnswer> merged = ranges.Merged(options, mode);
      ASSERT_EQ(merged.size(), kQueries * kHeads);
      constexpr std::int64_t kHeadDim = kValueDim / kHeads;
      std::vector<float> values(kQueries * kValueDim);
      for (std::size_t q = 0; q < merged.size(); ++q) {
        WriteValues(mode, merged[q].state, merged[q].sum, values.data() + q * kHeadDim);
        const QueryStats stats = StatsOf(mode, merged[q].state);
        EXPECT_EQ(stats.counted_rows, Ranges::kRows);
        EXPECT_NEAR(stats.max_logit, expected.stats[q].max_logit, 1e-6);
        EXPECT_NEAR(stats.entropy, expected.stats[q].entropy, 1e-6);
        if (mode == Mode::kSoft) {
          EXPECT_NEAR(stats.log_sum_exp, expected.stats[q].log_sum_exp, 1e-6);
        }
        ASSERT_EQ(merged[q].best_rows.size(), kTop);
        for (std::size_t i = 0; i < kTop; ++i) {
          EXPECT_EQ(merged[q].best_rows[i].position, expected.weights[q].rows[i].position);
        }
      }
      const std::vector<double> wide(expected.values.begin(), expected.values.end());
      EXPECT_LE(RelativeError(values, wide), 1e-6);
    }
  }
}

TEST(PartialAnswerTest, HardModeFindsTheBestRowOfAllRanges) {
  const Ranges ranges;
  const ResolvedOptions options{
      .mode = Mode::kHard, .weights = WeightsMode::kTop, .top_weights = 1};
  const AttentionAnswer expected =
      MustAttend(ranges.whole().Task(ranges.queries(), options, kHeads));
  const std::vector<PartialAnswer> merged = ranges.Merged(options, Mode::kHard);
  for (std::size_t q = 0; q < merged.size(); ++q) {
    EXPECT_THAT(merged[q].sum, IsEmpty());
    EXPECT_EQ(merged[q].state.max_position, expected.weights[q].rows[0].position);
  }
}

TEST(PartialAnswerTest, TopKFindsTheBestRowsOfAllRanges) {
  const Ranges ranges;
  const ResolvedOptions options{.top_k = kTop, .weights = WeightsMode::kTop, .top_weights = kTop};
  const AttentionAnswer expected =
      MustAttend(ranges.whole().Task(ranges.queries(), options, kHeads));
  const std::vector<PartialAnswer> merged = ranges.Merged(options, Mode::kHard);
  for (std::size_t q = 0; q < merged.size(); ++q) {
    EXPECT_THAT(merged[q].sum, IsEmpty());
    ASSERT_EQ(merged[q].best_rows.size(), kTop);
    for (std::size_t i = 0; i < kTop; ++i) {
      EXPECT_EQ(merged[q].best_rows[i].position, expected.weights[q].rows[i].position);
    }
  }
}

PartialAnswer OneRow(std::uint64_t base_position, double logit) {
  return {.base_position = base_position,
          .state = {.max_logit = logit, .weight = 1, .counted_rows = 1, .max_position = 3},
          .sum = {2},
          .best_rows = {{.position = 3, .logit = logit}}};
}

// HARD's answer is the lowest position, in whichever range it is.
TEST(PartialAnswerTest, OfEqualLogitsTheEarlierRowIsTheBest) {
  PartialAnswer merged = OneRow(100, 1.5);
  Merge(Mode::kHard, OneRow(200, 1.5), 2, merged);
  EXPECT_EQ(merged.state.max_position, 3);
  EXPECT_THAT(merged.best_rows, ElementsAre(CountedRow{.position = 3, .logit = 1.5},
                                            CountedRow{.position = 103, .logit = 1.5}));
  Merge(Mode::kHard, OneRow(300, 1.75), 2, merged);
  EXPECT_EQ(merged.state.max_position, 203);
  EXPECT_THAT(merged.best_rows, ElementsAre(CountedRow{.position = 203, .logit = 1.75},
                                            CountedRow{.position = 3, .logit = 1.5}));
}

TEST(PartialAnswerTest, ARangeWithoutCountedRowsChangesNothing) {
  const PartialAnswer none{.base_position = 900, .sum = {0}};
  PartialAnswer merged = OneRow(100, 1.5);
  Merge(Mode::kSoft, none, 2, merged);
  EXPECT_EQ(merged.state.counted_rows, 1);
  EXPECT_EQ(merged.state.weight, 1);
  EXPECT_THAT(merged.sum, ElementsAre(2));

  PartialAnswer from_none{.base_position = 0, .sum = {0}};
  Merge(Mode::kSoft, OneRow(100, 1.5), 2, from_none);
  EXPECT_EQ(from_none.state.max_logit, 1.5);
  EXPECT_EQ(from_none.state.max_position, 103);
  EXPECT_THAT(from_none.sum, ElementsAre(2));
  EXPECT_THAT(from_none.best_rows, ElementsAre(CountedRow{.position = 103, .logit = 1.5}));
}

// Weights relative to logits that lie further apart than float64's range of exponents.
TEST(PartialAnswerTest, ALogitFarAboveTheOthersTakesAllTheWeight) {
  for (const bool is_later : {false, true}) {
    PartialAnswer merged = OneRow(0, is_later ? -2000 : 2000);
    Merge(Mode::kSoft, OneRow(100, is_later ? 2000 : -2000), 2, merged);
    const QueryStats stats = StatsOf(Mode::kSoft, merged.state);
    EXPECT_EQ(stats.log_sum_exp, 2000);
    EXPECT_EQ(stats.entropy, 0);
    EXPECT_EQ(stats.counted_rows, 2);
    EXPECT_THAT(merged.sum, ElementsAre(2));
  }
}

PartialState StateWithLeftOut(double max_logit, double weight, double left_out) {
  return {.max_logit = max_logit,
          .weight = weight,
          .counted_rows = 10,
          .summed_rows = 3,
          .left_out = left_out};
}

TEST(PartialAnswerTest, WhatIsLeftOutIsScaledAsTheWeightsAreAndAddedUp) {
  const PartialState low = StateWithLeftOut(1, 2, 0.5);
  const PartialState high = StateWithLeftOut(1 + std::log(4), 3, 0.25);
  std::vector<double> sum = {1};
  for (const bool high_comes_later : {false, true}) {
    PartialState merged = high_comes_later ? low : high;
    Merge(Mode::kSoft, high_comes_later ? high : low, std::vector<double>{1}, merged,
          absl::MakeSpan(sum));
    EXPECT_NEAR(merged.weight, 3 + 2.0 / 4, 1e-15);
    EXPECT_NEAR(merged.left_out, 0.25 + 0.5 / 4, 1e-15);
    EXPECT_EQ(merged.counted_rows, 20);
    EXPECT_EQ(merged.summed_rows, 6);
  }
  // Into a state without rows, it is taken as it is.
  PartialState merged;
  Merge(Mode::kSoft, low, std::vector<double>{1}, merged, absl::MakeSpan(sum));
  EXPECT_EQ(merged.left_out, 0.5);
  EXPECT_EQ(merged.summed_rows, 3);
}

TEST(PartialAnswerTest, SummedRowsAddUpInEveryMode) {
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    PartialState merged = StateWithLeftOut(1, 2, 0);
    std::vector<double> sum = {1};
    Merge(mode, StateWithLeftOut(2, 3, 0), std::vector<double>{1}, merged, absl::MakeSpan(sum));
    EXPECT_EQ(merged.summed_rows, 6);
    EXPECT_EQ(merged.left_out, 0);
  }
}

TEST(PartialAnswerTest, TheErrorBoundIsThatOfTheArithmeticAndOfWhatWasLeftOut) {
  const QueryStats whole = StatsOf(Mode::kSoft, StateWithLeftOut(1, 2, 0));
  EXPECT_EQ(whole.error_bound, kErrorBoundDefault);
  EXPECT_EQ(whole.summed_rows, 3);
  const QueryStats part = StatsOf(Mode::kSoft, StateWithLeftOut(1, 4, 0.002));
  EXPECT_NEAR(part.error_bound, kErrorBoundDefault + 2 * 0.002 / 4, 1e-15);
  EXPECT_EQ(part.counted_rows, 10);

  const QueryStats hard = StatsOf(Mode::kHard, {.max_logit = 1, .counted_rows = 10});
  EXPECT_EQ(hard.error_bound, 0);
  EXPECT_EQ(hard.summed_rows, 1);
  const QueryStats linear = StatsOf(Mode::kLinear, StateWithLeftOut(1, -4, 0));
  EXPECT_EQ(linear.error_bound, kErrorBoundDefault);
  EXPECT_EQ(linear.summed_rows, 3);
}

TEST(PartialAnswerTest, WithoutRowsThereIsNoErrorAndNothingIsSummed) {
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    const QueryStats stats = StatsOf(mode, PartialState{});
    EXPECT_EQ(stats.error_bound, 0);
    EXPECT_EQ(stats.summed_rows, 0);
  }
}

TEST(PartialAnswerTest, NoRowsHaveTheValue0) {
  float value = 5;
  WriteValues(Mode::kSoft, PartialState{}, std::vector<double>{0}, &value);
  EXPECT_EQ(value, 0);
  EXPECT_TRUE(std::isinf(StatsOf(Mode::kSoft, PartialState{}).log_sum_exp));
}

TEST(PartialAnswerDeathTest, AnEarlierRangeIsNotMergedBehindALaterOne) {
  PartialAnswer merged = OneRow(200, 1);
  EXPECT_DEATH(Merge(Mode::kSoft, OneRow(100, 1), 2, merged), "rows from 100 merged behind");
}

}  // namespace
}  // namespace softlookup
