// A TaskAnswer with a running memory, which is merged before the first row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/attention/task_answer.h"
#include "tests/core/attention/played_pass.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;
using ::testing::ElementsAre;

// A running memory that stands for four rows up to position 11, before rows from 12 on. Its scores
// are 3 in head 0 and 10 in head 1, and 2 is taken from its logits for its age.
class TaskAnswerMemoryTest : public ::testing::Test {
 protected:
  AttentionTask Task(ResolvedOptions options, const std::vector<float>& queries = OneQuery()) {
    options.score = Score::kDot;
    options.temperature = 2;
    options.ln_decay = -0.25;
    AttentionTask task = TaskOf(options, /*num_heads=*/2, queries);
    task.begin = 12;
    task.age_end = 20;
    task.memory = {.key = key_, .value = value_, .multiplicity = 4, .position = 11};
    return task;
  }

  // The answer if head 0 finds `rows`, and head 1 nothing but the memory.
  AttentionAnswer AnswerWith(const AttentionTask& task, const std::vector<CountedRow>& rows) {
    PlayedPass pass(task);
    EXPECT_THAT(pass.Begin(), IsOk());
    pass.Find(0, rows);
    return pass.MustFinish();
  }

  const double key_[4] = {1, 1, 2, 1};
  const double value_[4] = {1000, 2000, 3000, 4000};
};

TEST_F(TaskAnswerMemoryTest, InSoftModeItWeighsAsItsRowsDoTogether) {
  for (const std::uint64_t top_k : {0, 2}) {
    for (const WeightsMode weights : {WeightsMode::kTop, WeightsMode::kAll}) {
      const AttentionAnswer answer =
          AnswerWith(Task({.top_k = top_k, .weights = weights}),
                     {{.position = 12, .logit = 3.0 / 2 - 2, .score = 7}});
      EXPECT_NEAR(answer.values[0], 0.8 * 1000 + 0.2 * 120, 1e-3);
      EXPECT_NEAR(answer.values[1], 0.8 * 2000 + 0.2 * 121, 1e-3);
      EXPECT_EQ(answer.values[2], 3000);
      EXPECT_EQ(answer.values[3], 4000);
      EXPECT_EQ(answer.stats[0].counted_rows, 2);
      EXPECT_EQ(answer.stats[0].summed_rows, 2);
      EXPECT_EQ(answer.stats[1].summed_rows, 1);
      EXPECT_NEAR(answer.stats[0].log_sum_exp, -0.5 + std::log(5), 1e-12);
      EXPECT_NEAR(answer.stats[1].max_logit, 3 + std::log(4), 1e-12);
      const std::vector<WeightedRow>& rows = answer.weights[0].rows;
      ASSERT_THAT(PositionsOf(answer.weights[0]), ElementsAre(11, 12));
      EXPECT_NEAR(rows[0].weight, 0.8, 1e-12);
      EXPECT_NEAR(rows[1].weight, 0.2, 1e-12);
      EXPECT_EQ(rows[0].score, 3);
      EXPECT_EQ(rows[1].score, 7);
      ASSERT_THAT(PositionsOf(answer.weights[1]), ElementsAre(11));
      EXPECT_EQ(answer.weights[1].rows[0].weight, 1);
      EXPECT_EQ(answer.weights[1].rows[0].score, 10);
    }
  }
}

TEST_F(TaskAnswerMemoryTest, InHardModeItWinsByTheLogitOfItsRowsTogetherAndOnATie) {
  const double memory_logit = -0.5 + std::log(4.0);
  for (const double logit : {0.0, memory_logit, 0.9}) {
    const AttentionAnswer answer =
        AnswerWith(Task({.mode = Mode::kHard, .weights = WeightsMode::kAll}),
                   {{.position = 12, .logit = logit}});
    const bool wins = logit <= memory_logit;
    EXPECT_EQ(answer.values[0], wins ? 1000 : 120) << logit;
    ASSERT_THAT(PositionsOf(answer.weights[0]), wins ? ElementsAre(11, 12) : ElementsAre(12, 11));
    EXPECT_EQ(answer.weights[0].rows[0].weight, 1);
    EXPECT_EQ(answer.weights[0].rows[1].weight, 0);
    EXPECT_EQ(answer.values[3], 4000);
  }
}

TEST_F(TaskAnswerMemoryTest, OfWeight0ItIsListedByItsPosition) {
  const std::vector<CountedRow> rows = {{.position = 12, .logit = 4000},
                                        {.position = 13, .logit = 2000},
                                        {.position = 14, .logit = 3000}};
  for (const Mode mode : {Mode::kSoft, Mode::kHard}) {
    const AttentionAnswer answer =
        AnswerWith(Task({.mode = mode, .weights = WeightsMode::kTop, .top_weights = 3}), rows);
    EXPECT_THAT(PositionsOf(answer.weights[0]), ElementsAre(12, 11, 13));
  }
}

TEST_F(TaskAnswerMemoryTest, InLinearModeItsWeightIsItsLogitForEachOfItsRows) {
  const std::vector<CountedRow> rows = {
      {.position = 12, .logit = -1}, {.position = 13, .logit = 2}, {.position = 14, .logit = -3}};
  for (const std::uint64_t top_k : {0, 4}) {
    AttentionTask task =
        Task({.mode = Mode::kLinear, .top_k = top_k, .weights = WeightsMode::kAll});
    const AttentionAnswer answer = AnswerWith(task, rows);
    // The logit is -0.5, and 3 in head 1.
    EXPECT_NEAR(answer.values[0], -2.0 * 1000 - 120 + 2 * 130 - 3 * 140, 1e-3);
    EXPECT_NEAR(answer.values[1], -2.0 * 2000 - 121 + 2 * 131 - 3 * 141, 1e-3);
    EXPECT_EQ(answer.values[2], 12 * 3000);
    EXPECT_EQ(answer.stats[0].max_logit, 2);
    EXPECT_EQ(answer.stats[0].summed_rows, 4);
    ASSERT_THAT(PositionsOf(answer.weights[0]), ElementsAre(13, 12, 11, 14));
    EXPECT_EQ(answer.weights[0].rows[2].weight, -2);
    EXPECT_EQ(answer.weights[0].rows[2].score, 3);
    ASSERT_THAT(PositionsOf(answer.weights[1]), ElementsAre(11));
    EXPECT_EQ(answer.weights[1].rows[0].weight, 12);
  }
}

TEST_F(TaskAnswerMemoryTest, InLinearModeItIsListedThoughOthersHaveLargerLogits) {
  const AttentionTask task =
      Task({.mode = Mode::kLinear, .weights = WeightsMode::kTop, .top_weights = 2});
  PlayedPass pass(task);
  ASSERT_THAT(pass.Begin(), IsOk());
  // The memory's logit is 3, and its weight 12.
  pass.Find(
      1,
      {{.position = 12, .logit = 5}, {.position = 13, .logit = 10}, {.position = 14, .logit = 4}});
  const AttentionAnswer answer = pass.MustFinish();
  EXPECT_THAT(PositionsOf(answer.weights[1]), ElementsAre(11, 13));
  EXPECT_EQ(answer.weights[1].remaining_weight, 9);

  AttentionTask partial = task;
  partial.whole = WholeTask{.begin = task.begin, .end = task.end, .memory = ShapeOf(task).memory};
  PlayedPass partial_pass(partial);
  ASSERT_THAT(partial_pass.Begin(), IsOk());
  partial_pass.Find(1, {{.position = 12, .logit = 5}, {.position = 13, .logit = 1}});
  const RankedRows rows = partial_pass.MustFinish().partials[1].rows;
  EXPECT_THAT(rows.best, ElementsAre(CountedRow{.position = 12, .logit = 5},
                                     CountedRow{.position = 13, .logit = 1}));
  EXPECT_EQ(rows.unranked_memory, (CountedRow{.position = 11, .logit = 3, .score = 10}));
}

TEST_F(TaskAnswerMemoryTest, CountsLikeARowAtItsLastPosition) {
  const std::vector<float> queries(4 * 4, 1);  // Scores of 2 and 3.
  // In how many head queries of the four queries the memory counts.
  const auto counted = [&](const ResolvedOptions& options, std::uint64_t position) {
    AttentionTask task = Task(options, queries);
    task.memory->position = position;
    PlayedPass pass(task);
    EXPECT_THAT(pass.Begin(), IsOk());
    std::uint64_t count = 0;
    for (std::int64_t q = 0; q < 8; ++q) count += pass.state(q).state.counted_rows;
    return count;
  };
  EXPECT_EQ(counted({}, 11), 8);
  EXPECT_EQ(counted({.min_score = 3}, 11), 4);
  EXPECT_EQ(counted({.min_score = 3.5}, 11), 0);
  EXPECT_EQ(counted({.causal_offset = 9}, 11), 8);
  EXPECT_EQ(counted({.causal = true, .causal_offset = 9}, 11), 4);  // Queries 2 and 3.
  EXPECT_EQ(counted({.causal = true, .causal_offset = 0}, 2), 4);
  EXPECT_EQ(counted({.causal = true, .causal_offset = 0}, 4), 0);
  EXPECT_EQ(counted({.causal = true, .causal_offset = ~std::uint64_t{0}}, 11), 8);
}

}  // namespace
}  // namespace softlookup
