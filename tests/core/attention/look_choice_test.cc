#include "core/attention/look_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/round_with_looks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using testing::NormalFloats;

TEST(LookChoiceTest, CutsTheLooksIntoTilesOfOnePlan) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * kLookDim, 1));
  const std::vector<float> many = NormalFloats(20 * kLookDim, 3), few = NormalFloats(kLookDim, 4);
  PassTasks tasks;
  tasks.Add(rows.Task(many, {.temperature = 0.01}));
  tasks.Add(rows.Task(few, {.temperature = 0.02}));
  tasks.Add(rows.Task(few, {.temperature = 0.01}));
  RoundWithLooks with(tasks);
  ASSERT_EQ(with.looks.all().size(), 22u);
  ASSERT_EQ(with.looks.tile_count(), 3);
  EXPECT_EQ(with.looks.tile(0).queries.count(), 16);
  EXPECT_EQ(with.looks.tile(1).queries.count(), 5) << "four of the first task, and the third's";
  EXPECT_EQ(with.looks.tile(2).queries.count(), 1) << "the second's";
  EXPECT_EQ(with.looks.tile(2).begin, 21);
  for (std::size_t q = 0; q < with.looks.all().size(); ++q) {
    EXPECT_EQ(with.looks.all()[q].query, q);
    EXPECT_EQ(with.looks.all()[q].panel_count, kLookRows / kernels::kPanelRows);
  }
}

TEST(LookChoiceTest, TasksOfFewSketchedBlocksOrOfWeightsThatAreNotSoftHaveNoLooks) {
  const TestRows rows = RowsOfKeys(NormalFloats(kLookRows * kLookDim, 1));
  const std::vector<float> query = NormalFloats(kLookDim, 3);
  PassTasks tasks;
  AttentionTask few_blocks = rows.Task(query, {.temperature = 0.01});
  few_blocks.blocks = few_blocks.blocks.subspan(0, 3);
  few_blocks.end = 3 * kernels::kBlockRowsMax;
  tasks.Add(few_blocks);
  tasks.Add(rows.Task(query, {.mode = Mode::kLinear}));
  tasks.Add(rows.Task(query, {.temperature = 0.01}));
  EXPECT_FALSE(MayHaveLooks(tasks[0].head_queries()));
  EXPECT_FALSE(MayHaveLooks(tasks[1].head_queries()));
  EXPECT_TRUE(MayHaveLooks(tasks[2].head_queries()));
  RoundWithLooks with(tasks);
  ASSERT_EQ(with.looks.all().size(), 1u);
  const std::size_t query_index = with.looks.all()[0].query;
  EXPECT_EQ(with.round.refs[query_index].task_index, 2u);
}

}  // namespace
}  // namespace softlookup
