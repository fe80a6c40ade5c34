#include "core/attention/blocks_summary.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/store/store_editor.h"
#include "tests/core/attention/look_answers.h"
#include "tests/core/attention/test_rows.h"

namespace softlookup {
namespace {

// Blocks of 1,024 rows whose keys have balls.
class BlocksSummaryTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 1024;

  const TestRows rows_ = RowsOfKeys(KeysByCluster());
  const std::vector<float> query_ = std::vector<float>(kLookDim);
  const AttentionTask task_ = rows_.Task(query_, {});
  std::vector<PositionedBlock> blocks_{task_.blocks.begin(), task_.blocks.end()};
};

TEST_F(BlocksSummaryTest, AddsUpAllBlocks) {
  ASSERT_EQ(blocks_.size(), 12);
  std::array<std::uint64_t, kRows / 64> mask = {};
  mask[3] = 0b101;
  blocks_[11].row_mask = mask.data();
  blocks_[11].sketch = nullptr;
  const BlocksSummary summary = SummaryOf(blocks_);
  EXPECT_EQ(summary.begin, 0);
  EXPECT_EQ(summary.end, 12 * kRows);
  EXPECT_EQ(summary.row_count, 12 * kRows);
  EXPECT_EQ(summary.counting_row_count, 11 * kRows + 2);
  EXPECT_EQ(summary.panel_count, 12 * 64);
  EXPECT_EQ(summary.panels_max, 64);
  EXPECT_EQ(summary.sketched_count, 11);
  EXPECT_GT(summary.balls.reach_max, 0);
  EXPECT_GT(summary.sketches.norm_max, 0);
  ASSERT_EQ(summary.groups.size(), 1);
  EXPECT_EQ(summary.groups[0], blocks_[7].group_balls);
  EXPECT_NE(summary.groups[0], nullptr);
}

TEST_F(BlocksSummaryTest, OfNoBlocksIsEmpty) {
  const BlocksSummary summary = SummaryOf({});
  EXPECT_EQ(summary.row_count, 0);
  EXPECT_TRUE(summary.groups.empty());
}

TEST_F(BlocksSummaryTest, AGroupNeedsTheBallsOfAllItsBlocks) {
  blocks_[3].sketch = nullptr;
  EXPECT_TRUE(SummaryOf(blocks_).groups.empty());
}

TEST_F(BlocksSummaryTest, AGroupNeedsRowsThatCountInAllItsBlocks) {
  const std::array<std::uint64_t, kRows / 64> none = {};
  blocks_[3].row_mask = none.data();
  EXPECT_TRUE(SummaryOf(blocks_).groups.empty());
}

TEST_F(BlocksSummaryTest, GroupsThatHaveFewOfTheBlocksAreLeftOut) {
  const absl::Span<const PositionedBlock> all = blocks_;
  EXPECT_FALSE(SummaryOf(all.first(8)).groups.empty());
  std::vector<PositionedBlock> more = blocks_;
  for (std::int64_t number = 12; number < 17; ++number) {
    more.push_back(blocks_[0]);
    more.back().number = number;
    more.back().first_position = static_cast<std::uint64_t>(number * kRows);
  }
  EXPECT_FALSE(SummaryOf(absl::MakeConstSpan(more).first(16)).groups.empty());
  EXPECT_TRUE(SummaryOf(more).groups.empty()) << "8 of 17 blocks";
}

// Blocks 1 to 11 begin within a group.
TEST_F(BlocksSummaryTest, BlocksThatBeginWithinAGroupHaveNone) {
  EXPECT_TRUE(SummaryOf(absl::MakeConstSpan(blocks_).subspan(1)).groups.empty());
}

TEST_F(BlocksSummaryTest, AQueryOfAllPositionsIsToldFromOthers) {
  const BlocksSummary summary = SummaryOf(blocks_);
  EXPECT_TRUE(summary.IsWithin({.begin = 0, .end = 12 * kRows}));
  EXPECT_FALSE(summary.IsWithin({.begin = 1, .end = 12 * kRows}));
  EXPECT_FALSE(summary.IsWithin({.begin = 0, .end = 12 * kRows - 1}));
}

}  // namespace
}  // namespace softlookup
