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
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TaskAnswerTest, HeadQueriesGoHeadByHeadAndResultsQueryByQuery) {
  const std::vector<float> queries = {1, 2, -3, 4, 5, -6, 7, 8, 9, 10, 11, 12};
  PlayedPass pass(TaskOf({.weights = WeightsMode::kAll}, /*num_heads=*/2, queries));
  ASSERT_THAT(pass.Begin(), IsOk());
  TaskAnswer& answer = pass.answer();
  ASSERT_EQ(answer.head_query_count(), 6);
  for (std::int64_t q = 0; q < 6; ++q) {
    const std::int64_t head = q / 3, t = q % 3;
    EXPECT_EQ(answer.HeadOf(q), head);
    const HeadQuery& query = pass.state(q).query;
    const float* components = queries.data() + t * 4 + head * 2;
    EXPECT_EQ(query.components[0], components[0]);
    EXPECT_EQ(query.components[1], components[1]);
    EXPECT_EQ(query.magnitude, std::max(std::abs(components[0]), std::abs(components[1])));
    EXPECT_DOUBLE_EQ(query.norm, std::hypot<double>(components[0], components[1]));
    const ScanPlan plan = answer.PlanOf(q);
    EXPECT_EQ(plan.head, head);
    EXPECT_THAT(std::pair(plan.key_dims.begin, plan.key_dims.count), Pair(head * 2, 2));
    EXPECT_THAT(std::pair(plan.value_dims.begin, plan.value_dims.count), Pair(head * 2, 2));
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

TEST(TaskAnswerTest, ThePlanSaysWhatToLookForInARow) {
  struct Case {
    ResolvedOptions options;
    bool sums_values;
    bool has_limit;
    bool has_top, has_first;
  };
  const Case cases[] = {
      {{}, true, false, false, false},
      {{.mode = Mode::kLinear}, true, false, false, false},
      {{.mode = Mode::kHard}, false, false, false, false},
      {{.top_k = kKnownRows - 1}, false, false, true, false},
      {{.top_k = kKnownRows}, true, false, false, false},  // It leaves no row out.
      {{.weights = WeightsMode::kAll}, true, true, true, false},
      {{.top_k = 3, .weights = WeightsMode::kAll}, false, false, true, false},
      {{.weights = WeightsMode::kTop}, true, false, true, true},
      {{.mode = Mode::kHard, .weights = WeightsMode::kTop}, false, false, true, true},
      {{.mode = Mode::kLinear, .weights = WeightsMode::kTop}, true, false, true, false},
      {{.top_k = 3, .weights = WeightsMode::kTop}, false, false, true, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    AttentionTask task = TaskOf(c.options);
    task.age_end = 77;
    task.tiles = kernels::TileUnit::kPortable;
    PlayedPass pass(task);
    ASSERT_THAT(pass.Begin(), IsOk());
    const ScanPlan plan = pass.answer().PlanOf(0);
    EXPECT_EQ(pass.answer().sums_values(), c.sums_values);
    EXPECT_EQ(pass.answer().merge_mode(), c.sums_values ? c.options.mode : Mode::kHard);
    EXPECT_EQ(plan.sum_values, c.sums_values);
    EXPECT_EQ(plan.collected_rows_left != nullptr, c.has_limit);
    EXPECT_EQ(plan.age_end, 77);
    EXPECT_EQ(plan.tiles, kernels::TileUnit::kPortable);
    EXPECT_EQ(pass.state(0).query.top_rows != nullptr, c.has_top);
    EXPECT_EQ(pass.state(0).query.first_rows != nullptr, c.has_first);
  }
  // The memory is one row more, which top_k can leave out.
  const double memory[4] = {};
  AttentionTask task = TaskOf({.top_k = 1001});
  task.begin = 1500;
  task.memory = {.key = memory, .value = memory, .position = 1499};
  EXPECT_TRUE(PlayedPass(task).answer().sums_values());
  task.options.top_k = 1000;
  EXPECT_FALSE(PlayedPass(task).answer().sums_values());
}

TEST(TaskAnswerTest, ACausalQuerySeesPositionsUpToItsOwn) {
  const std::vector<float> queries(3 * 4);
  const auto ranges = [&](std::uint64_t begin, std::uint64_t end, bool causal,
                          std::uint64_t offset) {
    AttentionTask task = TaskOf({.causal = causal, .causal_offset = offset}, 1, queries);
    task.begin = begin;
    task.end = end;
    PlayedPass pass(task);
    EXPECT_THAT(pass.Begin(), IsOk());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (std::int64_t t = 0; t < 3; ++t) {
      found.emplace_back(pass.state(t).query.begin, pass.state(t).query.end);
    }
    return found;
  };
  EXPECT_THAT(ranges(5, 20, false, 0), Each(Pair(5, 20)));
  EXPECT_THAT(ranges(5, 20, true, 10), ElementsAre(Pair(5, 11), Pair(5, 12), Pair(5, 13)));
  EXPECT_THAT(ranges(5, 12, true, 10), ElementsAre(Pair(5, 11), Pair(5, 12), Pair(5, 12)));
  EXPECT_THAT(ranges(5, 20, true, 4), ElementsAre(Pair(5, 5), Pair(5, 6), Pair(5, 7)));
  EXPECT_THAT(ranges(5, 20, true, 1), ElementsAre(Pair(2, 2), Pair(3, 3), Pair(4, 4)));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(ranges(5, 20, true, most), Each(Pair(5, 20)));
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
  task.partial_base_position = 5000;
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
  EXPECT_EQ(found.base_position, 5000);
  EXPECT_EQ(found.state.counted_rows, 5);
  EXPECT_EQ(found.state.weight, 0);
  EXPECT_THAT(found.sum, ElementsAre(90 + 100 + 220 - 320, 90 + 100 + 220 - 320));
  EXPECT_THAT(found.best_rows, ElementsAre(rows[3], rows[1], rows[2]));

  task.options.mode = Mode::kSoft;
  task.options.top_k = 2;
  PlayedPass selecting(task);
  ASSERT_THAT(selecting.Begin(), IsOk());
  selecting.Find(0, rows);
  const PartialAnswer best = selecting.MustFinish().partials[0];
  EXPECT_THAT(best.sum, IsEmpty());
  EXPECT_THAT(best.best_rows, ElementsAre(rows[3], rows[1]));
}

// Which weights tie is known only once all ranges of rows are merged.
TEST(TaskAnswerTest, APartialAnswersBestRowsAreByLogitAlsoWhereWeightsTie) {
  AttentionTask task = TaskOf({.weights = WeightsMode::kTop, .top_weights = 1});
  task.partial_base_position = 0;
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  const CountedRow larger{.position = 9, .logit = std::nextafter(1.0, 2.0)};
  pass.Find(0, {{.position = 8, .logit = 1}, larger});
  EXPECT_THAT(pass.MustFinish().partials[0].best_rows, ElementsAre(larger));
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

// Once they are collected, the answer is known to be too large.
TEST(TaskAnswerTest, WithAllWeightsNoMoreRowsAreCollectedThanAnAnswerHolds) {
  AttentionTask task = TaskOf({.weights = WeightsMode::kAll}, /*num_heads=*/2);
  task.answer_bytes_max = 17 * 30 + 16;
  PlayedPass pass(task);
  EXPECT_EQ(pass.answer().PlanOf(0).collected_rows_left->load(), 31);
  EXPECT_EQ(pass.answer().PlanOf(0).collected_rows_left,
            pass.answer().PlanOf(1).collected_rows_left);
}

TEST(TaskAnswerTest, CollectorsTakeTheBytesThatTheirRowsCan) {
  const auto bytes = [](const ResolvedOptions& options) {
    return PlayedPass(TaskOf(options)).answer().CollectorBytes();
  };
  EXPECT_EQ(bytes({}), 0);
  EXPECT_EQ(bytes({.weights = WeightsMode::kAll}), 0);
  EXPECT_EQ(bytes({.weights = WeightsMode::kTop, .top_weights = 20}), 2 * TopRows::BytesMax(20));
  EXPECT_EQ(bytes({.top_k = 300}), TopRows::BytesMax(300));
  EXPECT_EQ(bytes({.top_k = 300, .weights = WeightsMode::kTop}), TopRows::BytesMax(300));
  EXPECT_EQ(bytes({.top_k = kKnownRows}), 0);
}

TEST(TaskAnswerTest, ACancelledTaskFinishesNoHeadQueryAndHasNoAnswer) {
  PlayedPass pass(TaskOf({.weights = WeightsMode::kAll}));
  ASSERT_THAT(pass.Begin(), IsOk());
  EXPECT_TRUE(pass.answer().Continues());
  pass.Find(0, {{.position = 1}});
  pass.cancel().Cancel();
  EXPECT_FALSE(pass.answer().Continues());
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

TEST(TaskAnswerDeathTest, ATaskMustFitItsHeadsItsQueriesAndItsRows) {
  AttentionTask task = TaskOf({});
  task.num_heads = 3;
  EXPECT_DEATH(PlayedPass{task}, "3 heads of 4 and 4");
  task = TaskOf({});
  task.queries.cols = 5;
  EXPECT_DEATH(PlayedPass{task}, "queries of 5 components, keys of 4");
  task = TaskOf({});
  task.begin = kKnownRows + 1;
  EXPECT_DEATH(PlayedPass{task}, "rows from 2501 to 2500");
}

}  // namespace
}  // namespace softlookup
