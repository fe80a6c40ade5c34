#include "core/store/sealed_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

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
  const std::shared_ptr<const PackedRows> packed = PackLiveRows(panels, shape, kRows, live);
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

TEST(SealedBlockTest, ABlockWithoutLiveRowsPacksNone) {
  const kernels::PanelShape shape{.key_dim = 1, .value_dim = 1};
  const std::shared_ptr<const PackedRows> packed =
      PackLiveRows(PanelBuffer(shape, 1), shape, kernels::kPanelRows, RowMask());
  EXPECT_THAT(packed->offsets, IsEmpty());
  EXPECT_EQ(packed->panels, nullptr);
}

}  // namespace
}  // namespace softlookup
