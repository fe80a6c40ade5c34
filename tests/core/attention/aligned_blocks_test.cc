#include "core/attention/aligned_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/core/attention/pass_tasks.h"
#include "tests/core/attention/test_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using ::softlookup::testing::NormalFloats;
using ::testing::Pair;

TEST(AlignedBlocksTest, UnitesTheRowsOfAllTasks) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(kPassKeyDim, 2);
  PassTasks tasks;
  tasks.Add(TaskOver(rows, queries, 100, 200));
  tasks.Add(TaskOver(rows, queries, 50, 2100));
  AttentionTask last_block = TaskOver(rows, queries, 2048, 3000);
  last_block.blocks = last_block.blocks.subspan(2);
  tasks.Add(last_block);
  const AlignedBlocks blocks(tasks.all());
  ASSERT_EQ(blocks.count(), 3);
  EXPECT_EQ(blocks.Of(2, 0), nullptr);
  EXPECT_EQ(blocks.Of(2, 1), nullptr);
  EXPECT_EQ(blocks.Of(2, 2)->first_position, 2048);
  EXPECT_EQ(blocks.Of(0, 1)->first_position, 1024);
  const auto bounds = [&](std::int64_t block) {
    return std::pair(blocks.rows(block).begin, blocks.rows(block).end);
  };
  EXPECT_THAT(bounds(0), Pair(50, 1024));
  EXPECT_THAT(bounds(1), Pair(0, 1024));
  EXPECT_THAT(bounds(2), Pair(0, 3000 - 2048));
  EXPECT_EQ(blocks.row_bytes(), (kPassKeyDim + kPassValueDim) * 4);
  EXPECT_EQ(blocks.merge_group_of(0), blocks.merge_group_of(2));
}

TEST(AlignedBlocksTest, GroupsFollowTheNumbersOfTheBlocks) {
  const TestRows rows(10 * 1024, 1, 1, 1);
  const std::vector<float> queries = NormalFloats(1, 2);
  PassTasks tasks;
  AttentionTask task = TaskOver(rows, queries, 5 * 1024, 10 * 1024);
  task.blocks = task.blocks.subspan(5);
  tasks.Add(task);
  const AlignedBlocks blocks(tasks.all());
  // Blocks 5 to 7, then 8 and 9.
  EXPECT_EQ(blocks.merge_group_of(0), blocks.merge_group_of(2));
  EXPECT_NE(blocks.merge_group_of(2), blocks.merge_group_of(3));
  EXPECT_EQ(blocks.merge_group_of(3), blocks.merge_group_of(4));
}

// The pass has no blocks where no task has any.
TEST(AlignedBlocksTest, TasksMayLeaveAGapBetweenThem) {
  const TestRows rows(10 * 1024, 1, 1, 1);
  const std::vector<float> queries = NormalFloats(1, 2);
  PassTasks tasks;
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    AttentionTask task = TaskOver(rows, queries, begin * 1024, end * 1024);
    task.blocks = task.blocks.subspan(begin, end - begin);
    tasks.Add(task);
  };
  add(6, 9);
  add(8, 10);
  add(1, 3);
  add(1, 2);
  AttentionTask none = TaskOver(rows, queries, 0, 0);
  none.blocks = {};
  tasks.Add(none);
  const AlignedBlocks blocks(tasks.all());
  ASSERT_EQ(blocks.count(), 6) << "blocks 1, 2, 6, 7, 8 and 9";
  const std::vector<std::int64_t> numbers = {1, 2, 6, 7, 8, 9};
  const std::vector<std::vector<int>> tasks_of = {{2, 3}, {2}, {0}, {0}, {0, 1}, {1}};
  for (std::int64_t block = 0; block < 6; ++block) {
    SCOPED_TRACE(block);
    EXPECT_EQ(blocks.merge_group_of(block), numbers[block] / 8);
    for (int task = 0; task < 5; ++task) {
      const PositionedBlock* const found = blocks.Of(task, block);
      ASSERT_EQ(found != nullptr, std::ranges::count(tasks_of[block], task) == 1) << task;
      if (found == nullptr) continue;
      EXPECT_EQ(found->number, numbers[block]);
    }
    EXPECT_EQ(blocks.rows(block).end, 1024);
  }
  EXPECT_EQ(blocks.FirstOf(1), 4);
  EXPECT_EQ(blocks.panels_max(), 64);
}

TEST(AlignedBlocksTest, TasksOverAllRowsOfTheSameBlocksShareThem) {
  const TestRows rows(3000, kPassKeyDim, kPassValueDim, 1);
  const std::vector<float> queries = NormalFloats(kPassKeyDim, 2);
  PassTasks tasks;
  tasks.Add(TaskOver(rows, queries, 0, 3000));
  tasks.Add(TaskOver(rows, queries, 0, 3000));
  const AlignedBlocks blocks(tasks.all());
  ASSERT_EQ(blocks.count(), 3);
  EXPECT_EQ(blocks.rows(0).end, 1024);
  EXPECT_EQ(blocks.rows(2).begin, 0);
  EXPECT_EQ(blocks.rows(2).end, 3000 - 2048);
  EXPECT_EQ(blocks.Of(0, 2), blocks.Of(1, 2));
}

}  // namespace
}  // namespace softlookup
