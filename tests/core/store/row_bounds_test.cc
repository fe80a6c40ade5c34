#include "core/store/row_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace softlookup {
namespace {

TEST(RowBoundsTest, BoundsHoldForEveryRowAndHead) {
  const StoreConfig config{.name = "s", .key_dim = 4, .value_dim = 2, .num_heads = 2};
  const float keys[2][4] = {{3, -4, 0, 1}, {1, 1, -6, 8}};
  const float values[2][2] = {{-7, 1}, {2, 2}};
  RowBounds bounds;
  for (int row = 0; row < 2; ++row) bounds.Add({.key = keys[row], .value = values[row]}, config);
  EXPECT_EQ(bounds.key_magnitude, 8);
  EXPECT_EQ(bounds.value_magnitude, 7);
  EXPECT_THAT(bounds.key_norms_max, ::testing::ElementsAre(5, 10));

  kernels::BlockView view;
  bounds.SetIn(view);
  EXPECT_EQ(view.key_magnitude, 8);
  EXPECT_EQ(view.value_magnitude, 7);
  EXPECT_EQ(view.key_norms_max, bounds.key_norms_max.data());
}

}  // namespace
}  // namespace softlookup
