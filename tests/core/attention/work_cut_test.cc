#include "core/attention/work_cut.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace softlookup {
namespace {

// Groups of 8 blocks, as a pass merges them.
WorkCut Cut(const WorkSize& size) {
  WorkCut cut{.ranges = {{.begin = 7, .end = 9}}};  // Of the round before.
  CutWork(
      size, [](std::int64_t block) { return block / 8; }, cut);
  return cut;
}

TEST(WorkCutTest, WholeGroupsAreRangesWhereTheyAreEnoughForAllThreads) {
  const WorkCut cut = Cut({.block_count = 8 * 16 + 1, .query_count = 1, .thread_count = 1});
  ASSERT_EQ(cut.ranges.size(), 17u);
  EXPECT_EQ(cut.ranges[0].begin, 0);
  EXPECT_EQ(cut.ranges[0].end, 8);
  EXPECT_EQ(cut.ranges[16].begin, 128);
  EXPECT_EQ(cut.ranges[16].end, 129);
  for (const BlockRange& range : cut.ranges) EXPECT_TRUE(range.ends_group);
  EXPECT_EQ(cut.item_queries, 128);
}

TEST(WorkCutTest, FewerQueriesAnItemMakeUpForFewGroups) {
  const WorkCut cut = Cut({.block_count = 8 * 4, .query_count = 256, .thread_count = 1});
  EXPECT_EQ(cut.ranges.size(), 4u);
  EXPECT_EQ(cut.item_queries, 64) << "4 groups times 4 parts are 16 items";
}

TEST(WorkCutTest, ElseEachBlockIsARange) {
  const WorkCut cut = Cut({.block_count = 10, .query_count = 40, .thread_count = 1});
  ASSERT_EQ(cut.ranges.size(), 10u);
  for (std::int64_t block = 0; block < 10; ++block) {
    const BlockRange& range = cut.ranges[static_cast<std::size_t>(block)];
    EXPECT_EQ(range.begin, block);
    EXPECT_EQ(range.end, block + 1);
    EXPECT_EQ(range.ends_group, block == 7 || block == 9);
  }
  EXPECT_EQ(cut.item_queries, 32) << "10 blocks times 2 parts are at least 16 items";
}

TEST(WorkCutTest, AnItemHasAtLeastOneTileOfQueries) {
  const WorkCut cut = Cut({.block_count = 1, .query_count = 100, .thread_count = 64});
  EXPECT_EQ(cut.ranges.size(), 1u);
  EXPECT_EQ(cut.item_queries, 16);
}

TEST(WorkCutTest, NoBlocksAreNoRanges) {
  EXPECT_TRUE(Cut({.block_count = 0, .query_count = 1, .thread_count = 1}).ranges.empty());
}

}  // namespace
}  // namespace softlookup
