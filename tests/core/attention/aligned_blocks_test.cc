#include "core/attention/aligned_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(blocks.group_of(0), blocks.group_of(2));
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
  EXPECT_EQ(blocks.group_of(0), blocks.group_of(2));
  EXPECT_NE(blocks.group_of(2), blocks.group_of(3));
  EXPECT_EQ(blocks.group_of(3), blocks.group_of(4));
}

}  // namespace
}  // namespace softlookup
