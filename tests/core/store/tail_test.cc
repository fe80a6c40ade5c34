#include "core/store/tail.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/store/block_shape.h"

namespace softlookup {
namespace {

using kernels::kPanelRows;

const StoreConfig& TailConfig() {
  static const auto& config = *new StoreConfig{.name = "s", .key_dim = 2, .value_dim = 1};
  return config;
}

class TailTest : public ::testing::Test {
 protected:
  // Row j's components are all j.
  void AppendNumbered(Tail& tail, std::int64_t count,
                      std::optional<std::uint64_t> id = std::nullopt) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = static_cast<float>(tail.row_count());
      const float key[2] = {x, x};
      if (tail.NeedsRoom()) tail.MakeRoom(allocator_, /*blocks_before=*/0);
      const kernels::PanelRow stored =
          tail.Append({.key = key, .value = &x, .id = id}, TailConfig(), reader_);
      EXPECT_EQ(stored.key[stored.key_stride], x);
    }
  }

  void ExpectNumbered(const TailView& view) {
    for (std::int64_t row = 0; row < view.row_count; ++row) {
      const std::int64_t panel = row / kPanelRows;
      const std::byte* bytes = panel < view.full_panel_count ? view.full_panels->panel(panel)
                                                             : view.partial_panel->panel(0);
      ASSERT_EQ(*reader_.Read(bytes, row % kPanelRows).value, static_cast<float>(row));
    }
  }

  const kernels::PanelShape shape_ = PanelShapeOf(TailConfig());
  kernels::PanelRowReader reader_{shape_};
  PanelAllocator allocator_;
  Tail tail_{shape_};
};

TEST_F(TailTest, AViewStaysWhatItWas) {
  std::vector<TailView> views;
  for (std::int64_t rows = 0; rows < 100; ++rows) {
    views.push_back(tail_.View());
    AppendNumbered(tail_, 1);
  }
  std::int64_t rows = 0;
  for (const TailView& view : views) {
    EXPECT_EQ(view.row_count, rows);
    EXPECT_EQ(view.full_panel_count, rows / kPanelRows);
    EXPECT_EQ(view.bounds == nullptr, rows == 0);
    if (rows > 0) {
      EXPECT_EQ(view.bounds->value_magnitude, static_cast<float>(rows - 1));
    }
    ExpectNumbered(view);
    ++rows;
  }
}

TEST_F(TailTest, ACopyThatIsPutBackIsASavepoint) {
  AppendNumbered(tail_, 20, /*id=*/7);
  const Tail savepoint = tail_;
  const std::int64_t bytes = tail_.bytes();
  const std::vector<std::uint64_t> deleted = {3};
  tail_.Delete(0, deleted);
  AppendNumbered(tail_, 200, /*id=*/8);
  tail_ = savepoint;
  EXPECT_EQ(tail_.bytes(), bytes);
  const TailView view = tail_.View();
  EXPECT_EQ(view.row_count, 20);
  EXPECT_EQ(view.live, nullptr);
  EXPECT_EQ(view.tags->id(19), 7u);
  ExpectNumbered(view);
  AppendNumbered(tail_, 30);
  ExpectNumbered(tail_.View());
  ExpectNumbered(view);
}

TEST_F(TailTest, AFullTailIsSealedAndBeginsAgain) {
  AppendNumbered(tail_, tail_.block_rows() - 1);
  EXPECT_FALSE(tail_.is_full());
  AppendNumbered(tail_, 1, /*id=*/9);
  ASSERT_TRUE(tail_.is_full());
  const std::vector<std::uint64_t> deleted = {5000};
  tail_.Delete(5000, deleted);
  const auto memories =
      std::make_shared<const MemorySet>(std::vector<MemorySpec>{}, shape_.key_dim, 1);
  tail_.SetMemoriesBefore(memories);
  const SealedBlock block = tail_.Seal();
  EXPECT_EQ(block.panels->panel_count() * kPanelRows, tail_.block_rows());
  EXPECT_EQ(block.bounds->key_magnitude, static_cast<float>(tail_.block_rows() - 1));
  EXPECT_EQ(block.tags->id(tail_.block_rows() - 1), 9u);
  EXPECT_FALSE((*block.live)[0]);
  EXPECT_EQ(block.memories_before, memories);
  EXPECT_EQ(block.packed, nullptr);
  EXPECT_EQ(block.sketch, nullptr);

  EXPECT_EQ(tail_.row_count(), 0);
  const TailView empty = tail_.View();
  EXPECT_EQ(empty.full_panels, nullptr);
  EXPECT_EQ(empty.partial_panel, nullptr);
  EXPECT_EQ(empty.memories_before, nullptr);
  EXPECT_EQ(empty.tags, nullptr);
  EXPECT_EQ(empty.live, nullptr);
  AppendNumbered(tail_, 40);
  ExpectNumbered(tail_.View());
}

TEST_F(TailTest, ATailFromItsPartsGoesOn) {
  for (const std::int64_t rows : {0, 1, 16, 17, 100}) {
    Tail written(shape_);
    AppendNumbered(written, rows);
    const TailView view = written.View();
    TailParts parts{.row_count = rows};
    if (rows > 0) {
      parts.bounds = *view.bounds;
      parts.panels = std::make_shared<PanelBuffer>(shape_, (rows + kPanelRows - 1) / kPanelRows);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const float x = static_cast<float>(row);
      const float key[2] = {x, x};
      kernels::PutRow(shape_, key, &x, row % kPanelRows, parts.panels->panel(row / kPanelRows));
    }
    Tail loaded(shape_, std::move(parts));
    ExpectNumbered(loaded.View());
    AppendNumbered(loaded, 50);
    const TailView after = loaded.View();
    EXPECT_EQ(after.row_count, rows + 50);
    ExpectNumbered(after);
  }
}

using TailDeathTest = TailTest;

TEST_F(TailDeathTest, OnlyAFullTailIsSealed) {
  AppendNumbered(tail_, 3);
  EXPECT_DEATH(tail_.Seal(), "3 rows in a block of 1024");
}

}  // namespace
}  // namespace softlookup
