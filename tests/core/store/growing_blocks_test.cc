#include "core/store/growing_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace softlookup {
namespace {

using ::testing::ElementsAre;

const StoreConfig& WideConfig() {
  static const auto& config = *new StoreConfig{.name = "s", .key_dim = 64, .value_dim = 1};
  return config;
}

class GrowingBlocksTest : public ::testing::Test {
 protected:
  // Row j's components are all j.
  static void AppendNumbered(GrowingBlocks& blocks, std::int64_t count) {
    kernels::PanelRowReader reader(blocks.shape());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::vector<float> row(64, static_cast<float>(blocks.row_count()));
      blocks.Append({.key = row.data(), .value = row.data()}, WideConfig(), reader);
    }
  }

  GrowingBlocks blocks_{WideConfig()};
};

TEST_F(GrowingBlocksTest, AFullBlockIsSealedWithItsSketch) {
  AppendNumbered(blocks_, 2500);
  EXPECT_EQ(blocks_.row_count(), 2500u);
  const StoredBlocks view = blocks_.View();
  EXPECT_EQ(view.row_count(), 2500);
  EXPECT_EQ(view.block_rows(), 1024);
  EXPECT_NE(view.LiveRowsOf(0).sketch, nullptr);
  EXPECT_NE(view.LiveRowsOf(1).sketch, nullptr);
  EXPECT_EQ(view.LiveRowsOf(2).sketch, nullptr);
}

TEST_F(GrowingBlocksTest, ABlockHasTheMemoriesThatWereSetBeforeItsFirstRow) {
  const auto memories = std::make_shared<const MemorySet>(std::vector<MemorySpec>{}, 64, 1);
  AppendNumbered(blocks_, 1024);
  EXPECT_TRUE(blocks_.next_row_begins_block());
  blocks_.SetMemoriesBefore(memories);
  AppendNumbered(blocks_, 1);
  EXPECT_FALSE(blocks_.next_row_begins_block());
  EXPECT_EQ(blocks_.View().MemoriesBefore(1), memories.get());
  AppendNumbered(blocks_, 1024);
  const StoredBlocks view = blocks_.View();
  EXPECT_EQ(view.MemoriesBefore(0), nullptr);
  EXPECT_EQ(view.MemoriesBefore(1), memories.get());
  EXPECT_EQ(view.MemoriesBefore(2), nullptr);
}

TEST_F(GrowingBlocksTest, AppendReturnsTheRowAsItIsStored) {
  const StoreConfig config{
      .name = "s", .key_dim = 1, .value_dim = 1, .storage_type = StorageType::kBfloat16};
  GrowingBlocks blocks(config);
  kernels::PanelRowReader reader(blocks.shape());
  const float x = 1 + 0x1p-20f;
  // The last row of a block, which is sealed at once, and rows before it.
  for (std::int64_t row = 0; row < 1024; ++row) {
    const kernels::PanelRow stored = blocks.Append({.key = &x, .value = &x}, config, reader);
    ASSERT_EQ(*stored.key, 1) << row;
    ASSERT_EQ(*stored.value, 1) << row;
  }
}

TEST_F(GrowingBlocksTest, DeletedRowsAreMaskedInEachBlockAndFewLiveRowsPacked) {
  AppendNumbered(blocks_, 2500);
  const StoredBlocks before = blocks_.View();
  EXPECT_THAT(blocks_.Delete(std::vector<std::uint64_t>{}), ElementsAre());
  EXPECT_THAT(blocks_.Delete(std::vector<std::uint64_t>{1030}), ElementsAre(1));
  std::vector<std::uint64_t> positions(1000);
  std::iota(positions.begin(), positions.end(), 10);
  positions.push_back(2100);
  EXPECT_THAT(blocks_.Delete(positions), ElementsAre(0, 2));
  EXPECT_EQ(blocks_.deleted_count(), 1002u);
  const StoredBlocks after = blocks_.View();
  EXPECT_EQ(after.LiveRowsOf(0).view.row_count, 24);
  EXPECT_EQ(after.LiveRowsOf(0).sketch, nullptr);
  EXPECT_FALSE((*after.LiveMaskOf(1))[6]);
  EXPECT_NE(after.LiveRowsOf(1).sketch, nullptr);
  EXPECT_FALSE((*after.LiveMaskOf(2))[52]);
  for (const std::int64_t index : {0, 1, 2}) EXPECT_EQ(before.LiveMaskOf(index), nullptr);
}

TEST_F(GrowingBlocksTest, ACopyThatIsPutBackIsASavepoint) {
  AppendNumbered(blocks_, 1500);
  const GrowingBlocks savepoint = blocks_;
  const std::int64_t bytes = blocks_.bytes();
  blocks_.Delete(std::vector<std::uint64_t>{0, 1400});
  AppendNumbered(blocks_, 3000);
  EXPECT_GT(blocks_.bytes(), bytes);
  EXPECT_EQ(savepoint.row_count(), 1500u);
  blocks_ = savepoint;
  EXPECT_EQ(blocks_.bytes(), bytes);
  EXPECT_EQ(blocks_.row_count(), 1500u);
  EXPECT_EQ(blocks_.deleted_count(), 0u);
  AppendNumbered(blocks_, 1000);
  const StoredBlocks view = blocks_.View();
  kernels::PanelRowReader reader(blocks_.shape());
  for (std::int64_t row = 0; row < view.row_count(); ++row) {
    ASSERT_EQ(*reader.Read(view.AllRowsOf(row / 1024), row % 1024).value, static_cast<float>(row));
  }
}

// The positions [begin, end).
std::vector<std::uint64_t> Positions(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> positions(end - begin);
  std::iota(positions.begin(), positions.end(), begin);
  return positions;
}

// The values of the rows that lookups may read, and where they are.
std::vector<std::pair<std::uint64_t, float>> ReadLiveRows(const StoredBlocks& blocks) {
  std::vector<std::pair<std::uint64_t, float>> rows;
  kernels::PanelRowReader reader(blocks.shape());
  for (const PositionedBlock& block : blocks.BlocksOf(0, blocks.row_count())) {
    for (std::int64_t row = 0; row < block.view.row_count; ++row) {
      if (!block.MayCount(row)) continue;
      rows.emplace_back(block.PositionOf(row), *reader.Read(block.view, row).value);
    }
  }
  return rows;
}

TEST_F(GrowingBlocksTest, TheLastBlockOfAGroupHasItsBalls) {
  AppendNumbered(blocks_, 8 * 1024);
  const kernels::KeyBalls* const balls = blocks_.View().LiveRowsOf(7).group_balls;
  ASSERT_NE(balls, nullptr);
  EXPECT_EQ(blocks_.View().LiveRowsOf(6).group_balls, nullptr);
  // Rows 0 and 8191 are 8 |8191| apart, and lie on one line with the others.
  EXPECT_LE((*balls)[0].radius + (*balls)[1].radius, 1.05 * 8 * 4096);
  blocks_.Delete(Positions(7 * 1024, 7 * 1024 + 10));
  EXPECT_EQ(blocks_.View().LiveRowsOf(7).group_balls, balls) << "they hold the rows that remain";
  const GrowingBlocks savepoint = blocks_;
  blocks_.Delete(Positions(7 * 1024 + 10, 8 * 1024));
  EXPECT_EQ(blocks_.View().LiveRowsOf(7).group_balls, nullptr) << "a packed block has no balls";
  blocks_ = savepoint;
  EXPECT_EQ(blocks_.View().LiveRowsOf(7).group_balls, balls);
}

TEST_F(GrowingBlocksTest, AGroupWithABlockThatWasPackedHasNoBalls) {
  AppendNumbered(blocks_, 3 * 1024);
  blocks_.Delete(Positions(0, 1000));
  AppendNumbered(blocks_, 13 * 1024);
  EXPECT_EQ(blocks_.View().LiveRowsOf(7).group_balls, nullptr);
  EXPECT_NE(blocks_.View().LiveRowsOf(15).group_balls, nullptr);
}

TEST_F(GrowingBlocksTest, BlocksWithAQuarterOfTheirRowsOrLessAreCompacted) {
  AppendNumbered(blocks_, 6 * 1024 + 100);
  blocks_.Delete(Positions(10, 1024));                  // 10 are live.
  blocks_.Delete(Positions(1024, 1024 + 767));          // 257.
  blocks_.Delete(Positions(2 * 1024, 2 * 1024 + 768));  // 256.
  blocks_.Delete(Positions(3 * 1024, 4 * 1024));        // None.
  blocks_.Delete(Positions(5 * 1024 + 1, 6 * 1024));    // 1; of block 4, all.
  blocks_.Delete(Positions(6 * 1024, 6 * 1024 + 99));   // The tail is no full block.
  const StoredBlocks before = blocks_.View();
  const auto rows = ReadLiveRows(before);
  const std::int64_t bytes = blocks_.bytes();
  EXPECT_THAT(blocks_.Compact(4, 5), ElementsAre());
  EXPECT_THAT(blocks_.Compact(1, 3), ElementsAre(2));
  EXPECT_THAT(blocks_.Compact(0, 100), ElementsAre(0, 3, 5));
  EXPECT_THAT(blocks_.Compact(0, 100), ElementsAre());
  const StoredBlocks after = blocks_.View();
  for (const std::int64_t index : {0, 2, 3, 5}) EXPECT_TRUE(after.IsCompacted(index)) << index;
  for (const std::int64_t index : {1, 4, 6}) {
    EXPECT_FALSE(after.IsCompacted(index)) << index;
    EXPECT_EQ(after.KeptMaskOf(index), nullptr) << index;
  }
  EXPECT_EQ(after.KeptMaskOf(2)->CountFirst(1024), 256);
  EXPECT_EQ(ReadLiveRows(after), rows);
  EXPECT_EQ(ReadLiveRows(before), rows);
  EXPECT_EQ(after.row_count(), before.row_count());
  EXPECT_FALSE(before.IsCompacted(0)) << "a view does not change";
  EXPECT_EQ(before.AllRowsOf(0).row_count, 1024);
  EXPECT_EQ(after.BoundsOf(0).key_magnitude, 1023);
  // The panels of four blocks are gone.
  const std::int64_t block_bytes = 1024 * blocks_.shape().row_bytes();
  EXPECT_LE(blocks_.bytes(), bytes - 4 * block_bytes);
}

TEST_F(GrowingBlocksTest, TheLastBlockIsNotCompactedUntilARowFollows) {
  AppendNumbered(blocks_, 1024);
  blocks_.Delete(Positions(0, 1024));
  EXPECT_THAT(blocks_.Compact(0, 1), ElementsAre());
  AppendNumbered(blocks_, 1);
  EXPECT_THAT(blocks_.Compact(0, 1), ElementsAre(0));
  EXPECT_EQ(blocks_.View().LiveRowsOf(0).view.row_count, 0);
  EXPECT_EQ(GrowingBlocks(WideConfig()).Compact(0, 1), std::vector<std::int64_t>());
}

TEST_F(GrowingBlocksTest, RowsOfACompactedBlockAreDeletedAndDroppedLikeOthers) {
  AppendNumbered(blocks_, 2 * 1024 + 1);
  blocks_.Delete(Positions(0, 1000));
  EXPECT_THAT(blocks_.Compact(0, 2), ElementsAre(0));
  const std::int64_t bytes = blocks_.bytes();
  // One row, in one block; then rows of two blocks.
  EXPECT_THAT(blocks_.Delete(std::vector<std::uint64_t>{1001}), ElementsAre(0));
  EXPECT_THAT(blocks_.Delete(std::vector<std::uint64_t>{1003, 1500}), ElementsAre(0, 1));
  const StoredBlocks deleted = blocks_.View();
  EXPECT_EQ(deleted.KeptMaskOf(0)->CountFirst(1024), 24);
  EXPECT_EQ(deleted.LiveMaskOf(0)->CountFirst(1024), 22);
  EXPECT_EQ(deleted.LiveRowsOf(0).view.row_count, 22);
  const auto rows = ReadLiveRows(deleted);
  EXPECT_EQ(rows[0], std::make_pair(std::uint64_t{1000}, 1000.0f));
  EXPECT_EQ(rows[1], std::make_pair(std::uint64_t{1002}, 1002.0f));
  EXPECT_THAT(blocks_.Compact(0, 2), ElementsAre(0));
  EXPECT_EQ(blocks_.View().KeptMaskOf(0)->CountFirst(1024), 22);
  EXPECT_EQ(ReadLiveRows(blocks_.View()), rows);
  EXPECT_LE(blocks_.bytes(), bytes + static_cast<std::int64_t>(sizeof(RowMask)) * 2);
  EXPECT_EQ(blocks_.deleted_count(), 1003u);
  // To the last row.
  EXPECT_THAT(blocks_.Delete(std::vector<std::uint64_t>{1000, 1002}), ElementsAre(0));
  EXPECT_THAT(blocks_.Delete(Positions(1004, 1024)), ElementsAre(0));
  EXPECT_THAT(blocks_.Compact(0, 2), ElementsAre(0));
  EXPECT_EQ(blocks_.View().LiveRowsOf(0).view.row_count, 0);
  EXPECT_THAT(blocks_.Compact(0, 2), ElementsAre());
}

TEST_F(GrowingBlocksTest, ACopyFromBeforeACompactionHasAllRows) {
  AppendNumbered(blocks_, 3 * 1024);
  blocks_.Delete(Positions(0, 2000));
  const GrowingBlocks savepoint = blocks_;
  const std::int64_t bytes = blocks_.bytes();
  EXPECT_THAT(blocks_.Compact(0, 3), ElementsAre(0, 1));
  AppendNumbered(blocks_, 100);
  blocks_ = savepoint;
  EXPECT_EQ(blocks_.bytes(), bytes);
  const StoredBlocks view = blocks_.View();
  kernels::PanelRowReader reader(blocks_.shape());
  for (std::int64_t row = 0; row < view.row_count(); ++row) {
    ASSERT_EQ(*reader.Read(view.AllRowsOf(row / 1024), row % 1024).value, static_cast<float>(row));
  }
  EXPECT_THAT(blocks_.Compact(0, 3), ElementsAre(0, 1));
}

TEST_F(GrowingBlocksTest, BlocksFromTheirPartsAreCompleted) {
  AppendNumbered(blocks_, 1024);
  const StoredBlocks view = blocks_.View();
  const auto panels = std::make_shared<PanelBuffer>(blocks_.shape(), 64);
  for (std::int64_t row = 0; row < 1024; ++row) {
    const std::vector<float> numbers(64, static_cast<float>(row));
    kernels::PutRow(blocks_.shape(), numbers.data(), numbers.data(), row % kernels::kPanelRows,
                    panels->panel(row / kernels::kPanelRows));
  }
  SealedBlock block{.panels = panels,
                    .bounds = std::make_shared<const RowBounds>(view.BoundsOf(0))};
  GrowingBlocks loaded(WideConfig(), {.sealed = {std::move(block)}});
  EXPECT_EQ(loaded.row_count(), 1024u);
  EXPECT_NE(loaded.View().LiveRowsOf(0).sketch, nullptr);
  AppendNumbered(loaded, 1);
  EXPECT_EQ(loaded.View().BoundsOf(1).key_magnitude, 1024);
}

using GrowingBlocksDeathTest = GrowingBlocksTest;

TEST_F(GrowingBlocksDeathTest, OnlyRowsThatAreThereAreDeleted) {
  AppendNumbered(blocks_, 10);
  EXPECT_DEATH(blocks_.Delete(std::vector<std::uint64_t>{10}), "position 10 of 10 rows");
}

TEST_F(GrowingBlocksDeathTest, MemoriesAreSetBeforeTheFirstRowOfABlockOnly) {
  AppendNumbered(blocks_, 10);
  EXPECT_DEATH(blocks_.SetMemoriesBefore(nullptr), "the block has 10 rows already");
}

}  // namespace
}  // namespace softlookup
