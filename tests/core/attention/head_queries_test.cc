#include "core/attention/head_queries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/core/attention/played_pass.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(HeadQueriesTest, AreNumberedHeadByHead) {
  const std::vector<float> queries = {1, 2, -3, 4, 5, -6, 7, 8, 9, 10, 11, 12};
  PlayedPass pass(TaskOf({}, /*num_heads=*/2, queries));
  ASSERT_THAT(pass.Begin(), IsOk());
  HeadQueries& head_queries = pass.head_queries();
  ASSERT_EQ(head_queries.count(), 6);
  for (std::int64_t q = 0; q < 6; ++q) {
    const std::int64_t head = q / 3, t = q % 3;
    EXPECT_EQ(head_queries.HeadOf(q), head);
    EXPECT_EQ(head_queries.QueryOf(q), t);
    const HeadQuery& query = pass.state(q).query;
    const float* components = queries.data() + t * 4 + head * 2;
    EXPECT_EQ(query.components[0], components[0]);
    EXPECT_EQ(query.components[1], components[1]);
    EXPECT_EQ(query.magnitude, std::max(std::abs(components[0]), std::abs(components[1])));
    EXPECT_DOUBLE_EQ(query.norm, std::hypot<double>(components[0], components[1]));
    const ScanPlan plan = head_queries.PlanOf(q);
    EXPECT_EQ(plan.head, head);
    EXPECT_THAT(std::pair(plan.key_dims.begin, plan.key_dims.count), Pair(head * 2, 2));
    EXPECT_THAT(std::pair(plan.value_dims.begin, plan.value_dims.count), Pair(head * 2, 2));
  }
}

TEST(HeadQueriesTest, ThePlanSaysWhatToLookForInARow) {
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
    const ScanPlan plan = pass.head_queries().PlanOf(0);
    EXPECT_EQ(pass.head_queries().sums_values(), c.sums_values);
    EXPECT_EQ(pass.head_queries().merge_mode(), c.sums_values ? c.options.mode : Mode::kHard);
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
  EXPECT_TRUE(PlayedPass(task).head_queries().sums_values());
  task.options.top_k = 1000;
  EXPECT_FALSE(PlayedPass(task).head_queries().sums_values());
}

TEST(HeadQueriesTest, ACausalQuerySeesPositionsUpToItsOwn) {
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

// Once they are collected, the answer is known to be too large.
TEST(HeadQueriesTest, WithAllWeightsNoMoreRowsAreCollectedThanAnAnswerHolds) {
  AttentionTask task = TaskOf({.weights = WeightsMode::kAll}, /*num_heads=*/2);
  task.answer_bytes_max = 17 * 30 + 16;
  PlayedPass pass(task);
  EXPECT_EQ(pass.head_queries().PlanOf(0).collected_rows_left->load(), 31);
  EXPECT_EQ(pass.head_queries().PlanOf(0).collected_rows_left,
            pass.head_queries().PlanOf(1).collected_rows_left);
}

TEST(HeadQueriesTest, CollectorsTakeTheBytesThatTheirRowsCan) {
  const auto bytes = [](const ResolvedOptions& options) {
    return PlayedPass(TaskOf(options)).head_queries().CollectorBytes();
  };
  EXPECT_EQ(bytes({}), 0);
  EXPECT_EQ(bytes({.weights = WeightsMode::kAll}), 0);
  EXPECT_EQ(bytes({.weights = WeightsMode::kTop, .top_weights = 20}), 2 * TopRows::BytesMax(20));
  EXPECT_EQ(bytes({.top_k = 300}), TopRows::BytesMax(300));
  EXPECT_EQ(bytes({.top_k = 300, .weights = WeightsMode::kTop}), TopRows::BytesMax(300));
  EXPECT_EQ(bytes({.top_k = kKnownRows}), 0);
}

TEST(HeadQueriesTest, AfterASecondLookAllRowsCountAndThoseLeftOutHaveAWeight) {
  AttentionTask task = TaskOf({.causal = true, .causal_offset = 1499});
  task.begin = 100;
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  HeadQueryState& found = pass.state(0);
  found.state = {.max_logit = 3, .counted_rows = 16, .left_out = 0.25};
  pass.head_queries().CountLeftOut(-kInfiniteLogit, found);
  EXPECT_TRUE(found.looked);
  EXPECT_EQ(found.state.counted_rows, 1400u);
  EXPECT_EQ(found.state.left_out, 0.25) << "nothing was left out";
  pass.head_queries().CountLeftOut(3 + std::log(0.5), found);
  EXPECT_EQ(found.state.counted_rows, 1400u);
  EXPECT_DOUBLE_EQ(found.state.left_out, 0.75);
}

TEST(HeadQueriesTest, WithAMinScoreASecondLookHasCountedAllRowsThatCount) {
  PlayedPass pass(TaskOf({.min_score = 2}));
  ASSERT_THAT(pass.Begin(), IsOk());
  HeadQueryState& found = pass.state(0);
  found.state = {.max_logit = 3, .counted_rows = 16};
  pass.head_queries().CountLeftOut(3, found);
  EXPECT_TRUE(found.looked);
  EXPECT_EQ(found.state.counted_rows, 16u);
  EXPECT_EQ(found.state.left_out, 0);
}

TEST(HeadQueriesDeathTest, ATaskMustFitItsHeadsItsQueriesAndItsRows) {
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
