#include "core/store/block_shape.h"

#include <gtest/gtest.h>

namespace softlookup {
namespace {

TEST(BlockShapeTest, BlocksFitASecondLevelCacheAndScratch) {
  EXPECT_EQ(BlockRows({.key_dim = 1, .value_dim = 1}), kernels::kBlockRowsMax);
  EXPECT_EQ(BlockRows({.key_dim = 128, .value_dim = 128}), 512);
  EXPECT_EQ(BlockRows({.key_dim = 65536, .value_dim = 65536}), kernels::kPanelRows);
  const auto narrow = [](StorageType type) {
    return BlockRows({.key_dim = 300, .value_dim = 200, .storage = type});
  };
  EXPECT_EQ(narrow(StorageType::kFloat32), 256);
  EXPECT_EQ(narrow(StorageType::kBfloat16), 512);
  EXPECT_EQ(narrow(StorageType::kInt8), 1024);
}

}  // namespace
}  // namespace softlookup
