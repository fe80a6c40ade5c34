#include "core/attention/positioned_block.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace softlookup {
namespace {

TEST(PositionedBlockTest, RowsOfAWholeBlockFollowEachOther) {
  const PositionedBlock block{
      .view = {.row_count = 100}, .first_position = 1000, .position_count = 100};
  EXPECT_EQ(block.end_position(), 1100);
  EXPECT_EQ(block.PositionOf(7), 1007);
  EXPECT_EQ(block.FirstRowFrom(0), 0);
  EXPECT_EQ(block.FirstRowFrom(1000), 0);
  EXPECT_EQ(block.FirstRowFrom(1007), 7);
  EXPECT_EQ(block.FirstRowFrom(1099), 99);
  EXPECT_EQ(block.FirstRowFrom(1100), 100);
  EXPECT_EQ(block.FirstRowFrom(5000), 100);
}

TEST(PositionedBlockTest, RowsMayBeMissing) {
  const std::uint16_t offsets[] = {2, 3, 8};
  const PositionedBlock block{.view = {.row_count = 3},
                              .first_position = 1000,
                              .position_count = 10,
                              .row_offsets = offsets};
  EXPECT_EQ(block.end_position(), 1010);
  EXPECT_EQ(block.PositionOf(2), 1008);
  EXPECT_EQ(block.FirstRowFrom(1000), 0);
  EXPECT_EQ(block.FirstRowFrom(1002), 0);
  EXPECT_EQ(block.FirstRowFrom(1003), 1);
  EXPECT_EQ(block.FirstRowFrom(1004), 2);
  EXPECT_EQ(block.FirstRowFrom(1009), 3);
  EXPECT_EQ(block.FirstRowFrom(1010), 3);
}

TEST(PositionedBlockTest, CountsTheRowsThatItsMaskLeaves) {
  PositionedBlock block{.view = {.row_count = 200}, .position_count = 200};
  EXPECT_TRUE(block.MayCount(199));
  EXPECT_EQ(block.CountOf({.begin = 20, .end = 150}), 130);
  std::vector<std::uint64_t> mask(4);
  std::vector<bool> may_count(200);
  for (std::size_t row = 0; row < may_count.size(); ++row) {
    may_count[row] = row % 3 == 0 || row % 64 == 63;
    if (may_count[row]) mask[row / 64] |= std::uint64_t{1} << (row % 64);
  }
  block.row_mask = mask.data();
  for (std::int64_t begin = 0; begin <= 200; ++begin) {
    std::int64_t expected = 0;
    for (std::int64_t end = begin; end <= 200; ++end) {
      ASSERT_EQ(block.CountOf({.begin = begin, .end = end}), expected) << begin << " to " << end;
      if (end == 200) break;
      ASSERT_EQ(block.MayCount(end), may_count[static_cast<std::size_t>(end)]) << end;
      expected += block.MayCount(end) ? 1 : 0;
    }
  }
}

TEST(PositionedBlockTest, OtherRowsOrAnotherMaskAreNotTheSame) {
  const std::byte panels[2] = {};
  const std::uint64_t masks[2] = {};
  const std::uint16_t offsets[1] = {};
  const PositionedBlock block{.view = {.full_panels = &panels[0], .row_count = 16},
                              .row_mask = &masks[0]};
  EXPECT_TRUE(AreSameRows(block, block));
  PositionedBlock other = block;
  other.view.full_panels = &panels[1];
  EXPECT_FALSE(AreSameRows(block, other));
  other = block;
  other.view.partial_panel = &panels[1];
  EXPECT_FALSE(AreSameRows(block, other));
  other = block;
  other.view.row_count = 15;
  EXPECT_FALSE(AreSameRows(block, other));
  other = block;
  other.row_offsets = offsets;
  EXPECT_FALSE(AreSameRows(block, other));
  other = block;
  other.row_mask = &masks[1];
  EXPECT_FALSE(AreSameRows(block, other));
}

}  // namespace
}  // namespace softlookup
