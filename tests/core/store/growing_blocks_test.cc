#include "core/store/growing_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/store/store_memories.h"

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

  static double AverageIn(const GrowingBlocks& blocks) {
    return MemoriesView(blocks.memories(), WideConfig()).Read(0).value[0];
  }

  GrowingBlocks blocks_{WideConfig(), GrowingBlocks::Memories::kKept};
};

TEST_F(GrowingBlocksTest, AFullBlockIsSealedWithItsSketchAndTheMemoriesBeforeIt) {
  AppendNumbered(blocks_, 2500);
  EXPECT_EQ(blocks_.row_count(), 2500u);
  const StoredBlocks view = blocks_.View();
  EXPECT_EQ(view.row_count(), 2500);
  EXPECT_EQ(view.block_rows(), 1024);
  EXPECT_NE(view.LiveRowsOf(0).sketch, nullptr);
  EXPECT_NE(view.LiveRowsOf(1).sketch, nullptr);
  EXPECT_EQ(view.LiveRowsOf(2).sketch, nullptr);
  EXPECT_EQ(view.MemoriesBefore(0), nullptr);
  EXPECT_EQ((*view.MemoriesBefore(1))[0].Read().value[0], 1023 / 2.0);
  EXPECT_EQ((*view.MemoriesBefore(2))[0].Read().value[0], 2047 / 2.0);
  EXPECT_EQ(AverageIn(blocks_), 2499 / 2.0);
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
  EXPECT_EQ(AverageIn(blocks_), 2499 / 2.0);
}

TEST_F(GrowingBlocksTest, ACopyThatIsPutBackIsASavepoint) {
  AppendNumbered(blocks_, 1500);
  const GrowingBlocks savepoint = blocks_;
  const std::int64_t bytes = blocks_.bytes();
  blocks_.Delete(std::vector<std::uint64_t>{0, 1400});
  AppendNumbered(blocks_, 3000);
  EXPECT_GT(blocks_.bytes(), bytes);
  EXPECT_EQ(AverageIn(savepoint), 1499 / 2.0);
  blocks_ = savepoint;
  EXPECT_EQ(blocks_.bytes(), bytes);
  EXPECT_EQ(blocks_.row_count(), 1500u);
  EXPECT_EQ(blocks_.deleted_count(), 0u);
  AppendNumbered(blocks_, 1000);
  EXPECT_EQ(AverageIn(blocks_), 2499 / 2.0);
  EXPECT_EQ((*blocks_.View().MemoriesBefore(2))[0].Read().value[0], 2047 / 2.0);
}

TEST_F(GrowingBlocksTest, WithoutMemoriesNoBlockHasAny) {
  GrowingBlocks blocks(WideConfig(), GrowingBlocks::Memories::kNone);
  AppendNumbered(blocks, 1100);
  EXPECT_EQ(blocks.memories(), nullptr);
  EXPECT_EQ(blocks.View().MemoriesBefore(1), nullptr);
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
  GrowingBlocks loaded(
      WideConfig(),
      {.sealed = {std::move(block)}, .memories = std::make_shared<MemorySet>(*blocks_.memories())});
  EXPECT_EQ(loaded.row_count(), 1024u);
  EXPECT_NE(loaded.View().LiveRowsOf(0).sketch, nullptr);
  AppendNumbered(loaded, 1);
  EXPECT_EQ((*loaded.View().MemoriesBefore(1))[0].Read().value[0], 1023 / 2.0);
  EXPECT_EQ(AverageIn(loaded), 1024 / 2.0);
}

using GrowingBlocksDeathTest = GrowingBlocksTest;

TEST_F(GrowingBlocksDeathTest, OnlyRowsThatAreThereAreDeleted) {
  AppendNumbered(blocks_, 10);
  EXPECT_DEATH(blocks_.Delete(std::vector<std::uint64_t>{10}), "position 10 of 10 rows");
}

}  // namespace
}  // namespace softlookup
