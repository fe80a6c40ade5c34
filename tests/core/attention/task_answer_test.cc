#include "core/attention/task_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "tests/core/attention/played_pass.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TaskAnswerTest, ResultsGoQueryByQuery) {
  const std::vector<float> queries(3 * 4);
  PlayedPass pass(TaskOf({.weights = WeightsMode::kAll}, /*num_heads=*/2, queries));
  ASSERT_THAT(pass.Begin(), IsOk());
  for (std::int64_t q = 0; q < 6; ++q) {
    const std::int64_t head = q / 3, t = q % 3;
    pass.Find(q, {{.position = static_cast<std::uint64_t>(100 * t + head)}});
  }
  const AttentionAnswer results = pass.MustFinish();
  ASSERT_THAT(results.stats, SizeIs(6));
  ASSERT_THAT(results.weights, SizeIs(6));
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t head = 0; head < 2; ++head) {
      const auto position = static_cast<std::uint64_t>(100 * t + head);
      EXPECT_THAT(PositionsOf(results.weights[t * 2 + head]), ElementsAre(position));
      for (std::int64_t i = head * 2; i < head * 2 + 2; ++i) {
        EXPECT_EQ(results.values[t * 4 + i], KnownValue(position, i));
      }
    }
  }
}

TEST(TaskAnswerTest, NoRowIsTheValue0) {
  for (const Mode mode : {Mode::kSoft, Mode::kHard, Mode::kLinear}) {
    for (const std::uint64_t top_k : {0, 3}) {
      PlayedPass pass(TaskOf({.mode = mode, .top_k = top_k, .weights = WeightsMode::kTop}));
      ASSERT_THAT(pass.Begin(), IsOk());
      const AttentionAnswer answer = pass.MustFinish();
      EXPECT_THAT(answer.values, ElementsAre(0, 0, 0, 0));
      EXPECT_EQ(answer.stats[0].counted_rows, 0);
      EXPECT_EQ(answer.stats[0].max_logit, -kInfinity);
      EXPECT_EQ(answer.stats[0].log_sum_exp, -kInfinity);
      EXPECT_THAT(answer.weights[0].rows, IsEmpty());
      EXPECT_EQ(answer.weights[0].remaining_weight, 0);
    }
  }
}

TEST(TaskAnswerTest, HardModeHasTheValueOfTheLargestLogit) {
  PlayedPass pass(TaskOf({.mode = Mode::kHard}, /*num_heads=*/2));
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, {{.position = 3, .logit = 1}, {.position = 1030, .logit = 2}});
  pass.Find(0, {{.position = 2200, .logit = 2}});
  pass.Find(1, {{.position = 2499, .logit = -5}});
  const AttentionAnswer answer = pass.MustFinish();
  EXPECT_THAT(answer.values, ElementsAre(10300, 10301, 24992, 24993));
  EXPECT_THAT(answer.weights, IsEmpty());
  EXPECT_EQ(answer.stats[0].counted_rows, 3);
  EXPECT_EQ(answer.stats[0].summed_rows, 1);
  EXPECT_EQ(answer.stats[0].error_bound, 0);
  EXPECT_EQ(answer.stats[0].max_logit, 2);
}

TEST(TaskAnswerTest, TopKWeighsOnlyTheRowsThatItLeaves) {
  const std::vector<CountedRow> rows = {{.position = 40, .logit = 0},
                                        {.position = 1100, .logit = std::log(3)},
                                        {.position = 2100, .logit = 0},
                                        {.position = 2200, .logit = -1}};
  const auto answer_in = [&](Mode mode) {
    PlayedPass pass(TaskOf({.mode = mode, .top_k = 2}, /*num_heads=*/2));
    EXPECT_THAT(pass.Begin(), IsOk());
    pass.Find(0, rows);
    pass.Find(1, {rows[3]});
    return pass.MustFinish();
  };
  // Of the two logits of 0, the lower position counts: rows 40 and 1100.
  const AttentionAnswer soft = answer_in(Mode::kSoft);
  EXPECT_NEAR(soft.values[0], 0.25 * 400 + 0.75 * 11000, 1e-3);
  EXPECT_NEAR(soft.values[1], 0.25 * 401 + 0.75 * 11001, 1e-3);
  EXPECT_EQ(soft.values[2], 22002);
  EXPECT_EQ(soft.values[3], 22003);
  EXPECT_EQ(soft.stats[0].counted_rows, 2);
  EXPECT_EQ(soft.stats[0].max_logit, std::log(3));
  EXPECT_NEAR(soft.stats[0].log_sum_exp, std::log(4), 1e-12);
  EXPECT_NEAR(soft.stats[0].entropy, -0.25 * std::log(0.25) - 0.75 * std::log(0.75), 1e-12);
  EXPECT_EQ(soft.stats[0].summed_rows, 2);
  EXPECT_EQ(soft.stats[0].error_bound, kErrorBoundDefault);
  EXPECT_EQ(soft.stats[1].counted_rows, 1);
  EXPECT_EQ(soft.stats[1].summed_rows, 1);

  const AttentionAnswer hard = answer_in(Mode::kHard);
  EXPECT_THAT(hard.values, ElementsAre(11000, 11001, 22002, 22003));
  EXPECT_EQ(hard.stats[0].counted_rows, 2);
  EXPECT_EQ(hard.stats[0].summed_rows, 1);
  EXPECT_EQ(hard.stats[0].error_bound, 0);

  const AttentionAnswer linear = answer_in(Mode::kLinear);
  EXPECT_NEAR(linear.values[1], std::log(3) * 11001, 1e-2);
  EXPECT_EQ(linear.values[2], -22002);
  EXPECT_EQ(linear.stats[0].log_sum_exp, -kInfinity);
  EXPECT_EQ(linear.stats[0].summed_rows, 2);
}

TEST(TaskAnswerTest, APartialAnswerHasTheStateTheSumsAndTheBestRowsInOrder) {
  const std::vector<CountedRow> rows = {{.position = 8, .logit = -4},
                                        {.position = 9, .logit = 1},
                                        {.position = 10, .logit = 1},
                                        {.position = 11, .logit = 2},
                                        {.position = 12, .logit = 0}};
  AttentionTask task = TaskOf(
      {.mode = Mode::kLinear, .weights = WeightsMode::kTop, .top_weights = 3}, /*num_heads=*/2);
  task.whole = WholeTask{.end = task.end};
  PlayedPass linear(task);
  ASSERT_THAT(linear.Begin(), IsOk());
  linear.Find(1, rows);
  const AttentionAnswer answer = linear.MustFinish();
  EXPECT_THAT(answer.values, IsEmpty());
  EXPECT_THAT(answer.stats, IsEmpty());
  EXPECT_THAT(answer.weights, IsEmpty());
  ASSERT_THAT(answer.partials, SizeIs(2));
  EXPECT_EQ(answer.partials[0].state.counted_rows, 0);
  const PartialAnswer& found = answer.partials[1];
  EXPECT_EQ(found.state.counted_rows, 5);
  EXPECT_EQ(found.state.weight, 0);
  EXPECT_THAT(found.sum, ElementsAre(90 + 100 + 220 - 320, 90 + 100 + 220 - 320));
  EXPECT_THAT(found.rows.best, ElementsAre(rows[3], rows[1], rows[2]));

  task.options.mode = Mode::kSoft;
  task.options.top_k = 2;
  PlayedPass selecting(task);
  ASSERT_THAT(selecting.Begin(), IsOk());
  selecting.Find(0, rows);
  const PartialAnswer best = selecting.MustFinish().partials[0];
  EXPECT_THAT(best.sum, IsEmpty());
  EXPECT_THAT(best.rows.best, ElementsAre(rows[3], rows[1]));
}

TEST(TaskAnswerTest, APartialAnswerHasTheRowsOfTheLargestWeightsAndTheLowestPositions) {
  AttentionTask task = TaskOf({.weights = WeightsMode::kTop, .top_weights = 1});
  task.whole = WholeTask{.end = task.end};
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  // The two weights are equal, as they would be in a whole answer.
  const CountedRow best{.position = 8, .logit = 1};
  const CountedRow first{.position = 7, .logit = -3};
  pass.Find(0, {first, best, {.position = 9, .logit = std::nextafter(1.0, 2.0)}});
  const PartialAnswer found = pass.MustFinish().partials[0];
  EXPECT_THAT(found.rows.best, ElementsAre(best));
  EXPECT_THAT(found.rows.first, ElementsAre(first));
}

TEST(TaskAnswerTest, APartialAnswerInHardModeHasTheValueOfTheBestRow) {
  AttentionTask task = TaskOf({.mode = Mode::kHard}, /*num_heads=*/2);
  task.whole = WholeTask{.end = task.end};
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(1, {{.position = 3, .logit = 1}, {.position = 1030, .logit = 2}});
  const AttentionAnswer answer = pass.MustFinish();
  EXPECT_THAT(answer.partials[0].sum, IsEmpty());
  EXPECT_EQ(answer.partials[1].state.max_position, 1030);
  EXPECT_THAT(answer.partials[1].sum, ElementsAre(10302, 10303));
}

// Whether top_k can leave out rows depends on the rows of all ranges.
TEST(TaskAnswerTest, APartSelectsAsTheWholeTaskDoes) {
  AttentionTask task = TaskOf({.top_k = 4});
  task.end = 3;
  EXPECT_FALSE(ShapeOf(task).selects_rows());
  task.whole = WholeTask{.end = 5};
  EXPECT_EQ(ShapeOf(task).selected_max, 4);
  task.whole = WholeTask{.end = 4};
  EXPECT_FALSE(ShapeOf(task).selects_rows());
  task.whole = WholeTask{.end = 4, .memory = MemoryRow{.position = 0}};
  EXPECT_EQ(ShapeOf(task).selected_max, 4);
}

TEST(TaskAnswerTest, APartThatSelectsTooManyRowsIsRefused) {
  AttentionTask task = TaskOf({.top_k = 2});
  task.whole = WholeTask{.end = task.end};
  // A whole answer takes 4 values of 4 bytes and statistics of 20.
  const std::int64_t bytes = 16 + 20 + 2 * static_cast<std::int64_t>(sizeof(CountedRow));
  for (const std::int64_t spare : {0, -1}) {
    task.answer_bytes_max = bytes + spare;
    PlayedPass pass(task);
    ASSERT_THAT(pass.Begin(), IsOk());
    pass.Find(0, {{.position = 3}, {.position = 4}, {.position = 5}});
    pass.Finish();
    const absl::Status status = pass.answer().Take().status();
    EXPECT_EQ(ReasonOf(status), spare == 0 ? "" : "ANSWER_TOO_LARGE");
  }
}

TEST(TaskAnswerTest, AnAnswerMayTakeAllOfItsLimitAndNoByteMore) {
  // Two heads: 4 values of 4 bytes, statistics of 20, lists of 2 and weights of 17.
  struct Case {
    ResolvedOptions options;
    std::int64_t fixed, listed;
  };
  const Case cases[] = {
      {{}, 56, 0},
      {{.weights = WeightsMode::kAll}, 60, 2 * 3 * 17},
      {{.weights = WeightsMode::kTop, .top_weights = 2}, 60, 2 * 2 * 17},
      {{.weights = WeightsMode::kTop, .top_weights = 9}, 60, 2 * 3 * 17},
      {{.top_k = 1, .weights = WeightsMode::kAll}, 60, 2 * 1 * 17},
      {{.top_k = 2, .weights = WeightsMode::kTop, .top_weights = 1}, 60, 2 * 1 * 17},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    const auto answer_with = [&](std::int64_t bytes_max) -> absl::StatusOr<AttentionAnswer> {
      AttentionTask task = TaskOf(c.options, /*num_heads=*/2);
      task.answer_bytes_max = bytes_max;
      PlayedPass pass(task);
      if (const absl::Status status = pass.Begin(); !status.ok()) return status;
      for (std::int64_t q = 0; q < 2; ++q) {
        pass.Find(q, {{.position = 1}, {.position = 2}, {.position = 3}});
      }
      pass.Finish();
      return pass.answer().Take();
    };
    const std::int64_t bytes = c.fixed + c.listed;
    EXPECT_THAT(answer_with(bytes), IsOk());
    const absl::Status too_large = answer_with(bytes - 1).status();
    EXPECT_THAT(too_large, StatusIs(absl::StatusCode::kResourceExhausted,
                                    absl::StrCat("at least ", bytes, " bytes; the limit is ")));
    EXPECT_EQ(ReasonOf(too_large), reasons::kAnswerTooLarge.name);
    EXPECT_THAT(MetadataOf(too_large), ElementsAre(Pair("bytes", absl::StrCat(bytes)),
                                                   Pair("limit", absl::StrCat(bytes - 1))));
    AttentionTask task = TaskOf(c.options, /*num_heads=*/2);
    task.answer_bytes_max = c.fixed - 1;
    EXPECT_THAT(PlayedPass(task).Begin(),
                StatusIs(absl::StatusCode::kResourceExhausted, "at least"));
  }
}

TEST(TaskAnswerTest, AnAnswerThatIsTooLargeFinishesNoHeadQuery) {
  AttentionTask task = TaskOf({.weights = WeightsMode::kAll});
  task.answer_bytes_max = 100;
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, std::vector<CountedRow>(4));
  pass.Finish();
  EXPECT_THAT(pass.state(0).query.top_rows->Take(), SizeIs(4)) << "they were taken to be listed";
}

TEST(TaskAnswerTest, ACancelledTaskFinishesNoHeadQueryAndHasNoAnswer) {
  PlayedPass pass(TaskOf({.weights = WeightsMode::kAll}));
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, {{.position = 1}});
  pass.cancel().Cancel();
  pass.Finish();
  EXPECT_THAT(pass.state(0).query.top_rows->Take(), SizeIs(1)) << "it was taken to be listed";
  EXPECT_THAT(pass.answer().Take(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST(TaskAnswerTest, FinishingAHeadQueryNoticesThatTheDeadlineHasPassed) {
  PlayedPass pass(TaskOf({}), absl::Now() - absl::Seconds(1));
  ASSERT_THAT(pass.Begin(), IsOk());
  pass.Find(0, {{.position = 1}});
  pass.Finish();
  EXPECT_THAT(pass.answer().Take(), StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
}

}  // namespace
}  // namespace softlookup
