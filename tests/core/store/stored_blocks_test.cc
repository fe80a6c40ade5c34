#include "core/store/stored_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "core/store/snapshot.h"
#include "core/store/store_editor.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {
namespace {

using ::softlookup::testing::IsOk;

TEST(StoredBlocksTest, ASealedBlockAndTheTailHaveTheSameParts) {
  StoreEditor store({.name = "s", .key_dim = 1, .value_dim = 1});
  const std::int64_t block_rows = store.newest()->stored_blocks().block_rows();
  const std::int64_t row_count = block_rows + 20;
  std::vector<float> numbers(static_cast<std::size_t>(row_count));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::uint64_t kept = 10;  // Live rows left in the sealed block, so few that it is packed.
  const MatrixView column{.data = numbers.data(), .rows = row_count, .cols = 1};
  ASSERT_THAT(store.Append({.keys = column, .values = column}), IsOk());
  ASSERT_THAT(store.Delete({.begin = kept, .end = static_cast<std::uint64_t>(block_rows)}), IsOk());
  ASSERT_THAT(store.Delete({.begin = static_cast<std::uint64_t>(row_count) - 1}), IsOk());

  const std::shared_ptr<const Snapshot> snapshot = store.newest();
  const StoredBlocks& blocks = snapshot->stored_blocks();
  EXPECT_EQ(blocks.row_count(), row_count);
  EXPECT_EQ(blocks.AllRowsOf(0).row_count, block_rows);
  EXPECT_EQ(blocks.AllRowsOf(1).row_count, 20);
  EXPECT_EQ(blocks.LiveRowsOf(0).view.row_count, 10);
  EXPECT_EQ(blocks.LiveRowsOf(1).view.row_count, 20);  // The deleted row is masked.
  EXPECT_FALSE(blocks.LiveRowsOf(1).MayCount(19));
  EXPECT_EQ(blocks.LiveRowsOf(1).first_position, static_cast<std::uint64_t>(block_rows));
  EXPECT_EQ(blocks.LiveMaskOf(0)->CountFirst(block_rows), 10);
  EXPECT_EQ(blocks.LiveMaskOf(1)->CountFirst(20), 19);
  EXPECT_EQ(blocks.BoundsOf(0).key_magnitude, static_cast<float>(block_rows - 1));
  EXPECT_EQ(blocks.BoundsOf(1).value_magnitude, static_cast<float>(row_count - 1));
  EXPECT_EQ(blocks.TagsOf(0), nullptr);
  EXPECT_EQ(blocks.TagsOf(1), nullptr);
  EXPECT_EQ(blocks.MemoriesBefore(0), nullptr);
  ASSERT_NE(blocks.MemoriesBefore(1), nullptr);
  EXPECT_EQ((*blocks.MemoriesBefore(1))[0].Read().key,
            (*snapshot->MemoryAsOf(static_cast<std::uint64_t>(block_rows), 0))->Read().key);
}

}  // namespace
}  // namespace softlookup
