#include "core/store/panel_allocator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace softlookup {
namespace {

constexpr kernels::PanelShape kWideShape{.key_dim = 64, .value_dim = 64};
constexpr std::int64_t kPanelsOfABlock = 64;  // 512 KiB.
constexpr std::int64_t kBlocksOfALargeStore = 64;

TEST(PanelAllocatorTest, ASmallStoreHasNoUnusedBytes) {
  PanelAllocator allocator;
  const auto block = allocator.Allocate(kWideShape, kPanelsOfABlock, /*block_count=*/1);
  EXPECT_EQ(block->panel_count(), kPanelsOfABlock);
  EXPECT_EQ(allocator.unused_bytes(), 0);
}

TEST(PanelAllocatorTest, BlocksOfALargeStoreLieBesideEachOther) {
  if (!PanelBuffer::CommitsAsWritten(kWideShape, kPanelsOfABlock)) GTEST_SKIP() << "no mappings";
  PanelAllocator allocator;
  const auto first = allocator.Allocate(kWideShape, kPanelsOfABlock, kBlocksOfALargeStore);
  const std::int64_t unused = allocator.unused_bytes();
  EXPECT_GT(unused, 0);
  const auto second = allocator.Allocate(kWideShape, kPanelsOfABlock, kBlocksOfALargeStore);
  const std::int64_t bytes = kPanelsOfABlock * kWideShape.bytes();
  EXPECT_EQ(second->panel(0) - first->panel(0), bytes);
  EXPECT_EQ(allocator.unused_bytes(), unused - bytes);
}

TEST(PanelAllocatorTest, ACopyThatIsPutBackAllocatesTheSamePlaceAgain) {
  if (!PanelBuffer::CommitsAsWritten(kWideShape, kPanelsOfABlock)) GTEST_SKIP() << "no mappings";
  PanelAllocator allocator;
  const auto kept = allocator.Allocate(kWideShape, kPanelsOfABlock, kBlocksOfALargeStore);
  const PanelAllocator before = allocator;
  const std::byte* undone =
      allocator.Allocate(kWideShape, kPanelsOfABlock, kBlocksOfALargeStore)->panel(0);
  allocator = before;
  const auto again = allocator.Allocate(kWideShape, kPanelsOfABlock, kBlocksOfALargeStore);
  EXPECT_EQ(again->panel(0), undone);
}

}  // namespace
}  // namespace softlookup
