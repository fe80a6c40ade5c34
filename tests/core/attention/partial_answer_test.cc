#include "softlookup/partial_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;

AnswerShape ShapeOf(Mode mode) {
  return {.query_count = 1,
          .value_dim = 1,
          .mode = mode,
          .weights = WeightsMode::kTop,
          .top_weights = 2};
}

PartialAnswer OneRow(std::uint64_t position, double logit, double value = 2) {
  const CountedRow row{.position = position, .logit = logit};
  return {.state = {.max_logit = logit, .weight = 1, .counted_rows = 1, .max_position = position},
          .sum = {value},
          .rows = {.best = {row}, .first = {row}}};
}

// HARD's answer is the value at the lowest position, in whichever range it is.
TEST(PartialAnswerTest, OfEqualLogitsTheEarlierRowIsTheBest) {
  const AnswerShape shape = ShapeOf(Mode::kHard);
  PartialAnswer merged = OneRow(103, 1.5, 20);
  Merge(shape, OneRow(203, 1.5, 30), merged);
  EXPECT_EQ(merged.state.max_position, 103);
  EXPECT_THAT(merged.sum, ElementsAre(20));
  EXPECT_THAT(merged.rows.best, ElementsAre(CountedRow{.position = 103, .logit = 1.5},
                                            CountedRow{.position = 203, .logit = 1.5}));
  Merge(shape, OneRow(303, 1.75, 40), merged);
  EXPECT_EQ(merged.state.max_position, 303);
  EXPECT_THAT(merged.sum, ElementsAre(40));
  EXPECT_THAT(merged.rows.best, ElementsAre(CountedRow{.position = 303, .logit = 1.75},
                                            CountedRow{.position = 103, .logit = 1.5}));
  EXPECT_THAT(merged.rows.first, ElementsAre(CountedRow{.position = 103, .logit = 1.5},
                                             CountedRow{.position = 203, .logit = 1.5}));
}

TEST(PartialAnswerTest, ARangeWithoutCountedRowsChangesNothing) {
  const AnswerShape shape = ShapeOf(Mode::kSoft);
  PartialAnswer merged = OneRow(103, 1.5);
  merged.arithmetic_error = 3e-6;
  Merge(shape, {.arithmetic_error = 1}, merged);
  EXPECT_EQ(merged.state.counted_rows, 1);
  EXPECT_EQ(merged.state.weight, 1);
  EXPECT_EQ(merged.arithmetic_error, 3e-6);
  EXPECT_THAT(merged.sum, ElementsAre(2));

  PartialAnswer from_none;
  Merge(shape, merged, from_none);
  EXPECT_EQ(from_none.state.max_logit, 1.5);
  EXPECT_EQ(from_none.arithmetic_error, 3e-6);
  EXPECT_THAT(from_none.sum, ElementsAre(2));
  EXPECT_THAT(from_none.rows.best, ElementsAre(CountedRow{.position = 103, .logit = 1.5}));
}

// Lists order rows of equal weight by position, and many logits have equal weights.
TEST(PartialAnswerTest, RowsOfOneWeightAreBestByPositionInSoftModeAlone) {
  const double logit = 1, larger = std::nextafter(logit, 2);
  for (const Mode mode : {Mode::kSoft, Mode::kLinear}) {
    PartialAnswer merged = OneRow(103, logit);
    Merge(ShapeOf(mode), OneRow(203, larger), merged);
    const std::uint64_t best = mode == Mode::kSoft ? 103 : 203;
    EXPECT_EQ(merged.rows.best[0].position, best);
  }
}

TEST(PartialAnswerTest, TopKKeepsTheBestRowsOfAllRanges) {
  AnswerShape shape = ShapeOf(Mode::kSoft);
  shape.selected_max = 3;
  const auto rows = [](std::vector<CountedRow> best) {
    return PartialAnswer{.rows = {.best = std::move(best)}};
  };
  PartialAnswer merged;
  Merge(shape, rows({{.position = 4, .logit = 9}, {.position = 1, .logit = 2}}), merged);
  Merge(shape, rows({{.position = 17, .logit = 9}, {.position = 12, .logit = 3}}), merged);
  EXPECT_THAT(merged.rows.best, ElementsAre(CountedRow{.position = 4, .logit = 9},
                                            CountedRow{.position = 17, .logit = 9},
                                            CountedRow{.position = 12, .logit = 3}));
}

TEST(PartialAnswerTest, TheErrorOfRoundingIsTheLargestOfAllRanges) {
  PartialAnswer merged = OneRow(103, 1.5);
  merged.arithmetic_error = 3e-6;
  PartialAnswer later = OneRow(203, 1.5);
  later.arithmetic_error = 4e-6;
  Merge(ShapeOf(Mode::kSoft), later, merged);
  EXPECT_EQ(merged.arithmetic_error, 4e-6);
}

// Weights relative to logits that lie further apart than float64's range of exponents.
TEST(PartialAnswerTest, ALogitFarAboveTheOthersTakesAllTheWeight) {
  for (const bool is_later : {false, true}) {
    PartialAnswer merged = OneRow(3, is_later ? -2000 : 2000);
    Merge(ShapeOf(Mode::kSoft), OneRow(103, is_later ? 2000 : -2000), merged);
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

}  // namespace
}  // namespace softlookup
