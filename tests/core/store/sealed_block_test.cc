#include "core/store/sealed_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "core/kernels/panel_rows.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SealedBlockTest, ABlockHasASketchIfAFirstLookSavesTime) {
  const RowBounds small{.key_magnitude = 1}, large{.key_magnitude = 0x1p127f};
  EXPECT_TRUE(HasSketch({.key_dim = 32, .value_dim = 1}, small));
  EXPECT_FALSE(HasSketch({.key_dim = 32, .value_dim = 1}, large));
  EXPECT_FALSE(HasSketch({.key_dim = 31, .value_dim = 1}, small));
  EXPECT_FALSE(HasSketch({.key_dim = 32, .value_dim = 2, .num_heads = 2}, small));
  EXPECT_TRUE(
      HasSketch({.key_dim = 32, .value_dim = 1, .storage_type = StorageType::kBfloat16}, small));
  EXPECT_FALSE(
      HasSketch({.key_dim = 32, .value_dim = 1, .storage_type = StorageType::kInt8}, small));
}

TEST(SealedBlockTest, LiveRowsArePackedInTheirOrder) {
  constexpr std::int64_t kRows = 4 * kernels::kPanelRows;
  const kernels::PanelShape shape{.key_dim = 2, .value_dim = 1};
  PanelBuffer panels(shape, kRows / kernels::kPanelRows);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const float x = static_cast<float>(row), key[2] = {x, -x};
    kernels::PutRow(shape, key, &x, row % kernels::kPanelRows,
                    panels.panel(row / kernels::kPanelRows));
  }
  RowMask live;
  for (const std::int64_t row : {63, 5, 17}) live.Set(row);
  const std::shared_ptr<const PackedRows> packed = PackLiveRows(&panels, shape, kRows, live);
  EXPECT_THAT(packed->offsets, ElementsAre(5, 17, 63));
  kernels::PanelRowReader reader(shape);
  for (std::int64_t to = 0; to < packed->row_count(); ++to) {
    const kernels::PanelRow row = reader.Read(packed->panels->panel(0), to);
    const float x = static_cast<float>(packed->offsets[to]);
    EXPECT_EQ(row.key[0], x);
    EXPECT_EQ(row.key[row.key_stride], -x);
    EXPECT_EQ(*row.value, x);
  }
}

// A block of 64 rows, whose components are the rows' numbers and whose ids are 100 higher.
class CompactedBlockTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 4 * kernels::kPanelRows;

  CompactedBlockTest() {
    const auto panels = std::make_shared<PanelBuffer>(kShape, kRows / kernels::kPanelRows);
    const auto tags = std::make_shared<RowTags>();
    RowBounds bounds;
    bounds.key_norms_max = {63};
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float x = static_cast<float>(row);
      kernels::PutRow(kShape, &x, &x, row % kernels::kPanelRows,
                      panels->panel(row / kernels::kPanelRows));
      tags->Add(row, 100 + row, {});
    }
    block_.panels = panels;
    block_.bounds = std::make_shared<const RowBounds>(bounds);
    block_.tags = tags;
  }
  // Deletes all rows but those in `rows`.
  void Keep(const std::vector<std::int64_t>& rows) {
    RowMask live;
    for (const std::int64_t row : rows) live.Set(row);
    block_.live = std::make_shared<const RowMask>(live);
    block_.packed = block_.is_compacted() ? PackLiveRows(*block_.packed, kShape, live)
                                          : PackLiveRows(block_.panels.get(), kShape, kRows, live);
    SetLiveRows(kShape, kRows, /*index=*/3, block_);
  }
  void CompactBlock() {
    Compact(block_);
    SetLiveRows(kShape, kRows, /*index=*/3, block_);
  }
  // The rows that lookups read.
  std::vector<float> Rows() const {
    std::vector<float> rows;
    kernels::PanelRowReader reader(kShape);
    for (std::int64_t row = 0; row < block_.live_rows.view.row_count; ++row) {
      rows.push_back(*reader.Read(block_.live_rows.view, row).key);
      EXPECT_EQ(rows.back() + 3 * kRows, block_.live_rows.PositionOf(row));
    }
    return rows;
  }

  static constexpr kernels::PanelShape kShape{.key_dim = 1, .value_dim = 1};
  SealedBlock block_;
};

TEST_F(CompactedBlockTest, TheBallsOfItsGroupCountInItsBytes) {
  const std::int64_t before = block_.bytes();
  const std::vector<float> centre(16, 1.0f);
  const std::vector<kernels::KeyBall> members(
      8, {.centre = centre.data(), .centre_norm = 4, .radius = 1});
  block_.group_balls = std::make_shared<const GroupBalls>(members, 16);
  EXPECT_GE(block_.bytes(), before + 2 * 16 * 4);
}

TEST_F(CompactedBlockTest, LookupsReadTheSameBytes) {
  // A panel and a row; a panel; a row; none.
  std::vector<std::int64_t> rows(17);
  std::iota(rows.begin(), rows.end(), 40);
  for (const std::size_t count : {17, 16, 1, 0}) {
    SCOPED_TRACE(count);
    rows.resize(count);
    Keep(rows);
    const PositionedBlock before = block_.live_rows;
    const std::vector<float> expected = Rows();
    CompactBlock();
    const PositionedBlock& after = block_.live_rows;
    EXPECT_TRUE(block_.is_compacted());
    EXPECT_EQ(Rows(), expected);
    EXPECT_EQ(expected.size(), count);
    EXPECT_EQ(after.row_offsets, before.row_offsets);
    EXPECT_EQ(after.number, 3);
    EXPECT_EQ(after.first_position, before.first_position);
    EXPECT_EQ(after.position_count, kRows);
    EXPECT_EQ(after.view.row_count, before.view.row_count);
    EXPECT_EQ(after.view.full_panel_count, before.view.full_panel_count);
    EXPECT_EQ(after.view.partial_panel, before.view.partial_panel);
    if (count > 0) {
      EXPECT_EQ(after.view.full_panels, before.view.full_panels);
    }
    // The bounds stay those over all rows, as the bits of answers depend on them.
    EXPECT_EQ(after.view.key_magnitude, before.view.key_magnitude);
    EXPECT_EQ(after.view.value_magnitude, before.view.value_magnitude);
    EXPECT_EQ(after.view.key_norms_max, before.view.key_norms_max);
  }
}

TEST_F(CompactedBlockTest, ThePanelsAndTheTagsOfDeletedRowsAreFreed) {
  Keep({3, 5});
  const std::int64_t before = block_.bytes(), panel_bytes = block_.panels->bytes();
  CompactBlock();
  EXPECT_EQ(block_.panels, nullptr);
  EXPECT_EQ(block_.kept, block_.live);
  EXPECT_LT(block_.bytes(), before - panel_bytes);
  EXPECT_EQ(block_.tags->id(3), 103u);
  EXPECT_EQ(block_.tags->id(4), std::nullopt);
  // Rows that are deleted later take a second mask, until the block is compacted again.
  Keep({5});
  EXPECT_TRUE((*block_.kept)[3]);
  EXPECT_EQ(block_.tags->id(3), 103u);
  const std::int64_t with_two_masks = block_.bytes();
  CompactBlock();
  EXPECT_FALSE((*block_.kept)[3]);
  EXPECT_LT(block_.bytes(), with_two_masks);
  EXPECT_EQ(Rows(), std::vector<float>{5});
  Keep({});
  CompactBlock();
  EXPECT_EQ(block_.tags, nullptr);
  EXPECT_THAT(Rows(), IsEmpty());
}

using CompactedBlockDeathTest = CompactedBlockTest;

TEST_F(CompactedBlockDeathTest, OnlyPackedRowsAreKept) {
  EXPECT_DEATH(Compact(block_), "a block without packed rows would lose live ones");
}

TEST_F(CompactedBlockDeathTest, HasNotAllRows) {
  Keep({1});
  CompactBlock();
  EXPECT_DEATH((void)block_.AllRows(kShape), "is_compacted");
}

TEST(SealedBlockTest, LiveRowsArePackedFromThoseThatArePacked) {
  constexpr std::int64_t kRows = 4 * kernels::kPanelRows;
  const kernels::PanelShape shape{.key_dim = 2, .value_dim = 3, .storage = StorageType::kInt8};
  PanelBuffer panels(shape, kRows / kernels::kPanelRows);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const float x = static_cast<float>(row) + 0.3f, key[2] = {x, 1}, value[3] = {-x, 0, x / 7};
    kernels::PutRow(shape, key, value, row % kernels::kPanelRows,
                    panels.panel(row / kernels::kPanelRows));
  }
  RowMask first = RowMask::All(), second;
  for (std::int64_t row = 0; row < kRows; row += 3) first.Clear(row);
  for (const std::int64_t row : {1, 2, 22, 61}) second.Set(row);
  const auto packed = PackLiveRows(&panels, shape, kRows, first);
  const auto twice = PackLiveRows(*packed, shape, second);
  const auto once = PackLiveRows(&panels, shape, kRows, second);
  EXPECT_THAT(twice->offsets, ElementsAre(1, 2, 22, 61));
  EXPECT_EQ(0, std::memcmp(twice->panels->panel(0), once->panels->panel(0),
                           static_cast<std::size_t>(shape.bytes())));
  EXPECT_EQ(twice->bytes(), once->bytes());
  EXPECT_EQ(PackLiveRows(*twice, shape, RowMask())->panels, nullptr);
}

TEST(SealedBlockTest, ABlockWithoutLiveRowsPacksNone) {
  const kernels::PanelShape shape{.key_dim = 1, .value_dim = 1};
  const PanelBuffer no_rows(shape, 1);
  const std::shared_ptr<const PackedRows> packed =
      PackLiveRows(&no_rows, shape, kernels::kPanelRows, RowMask());
  EXPECT_THAT(packed->offsets, IsEmpty());
  EXPECT_EQ(packed->panels, nullptr);
}

}  // namespace
}  // namespace softlookup
