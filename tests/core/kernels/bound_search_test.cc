// Searches among bounds on every instruction set of this machine, against plain loops.
#include "core/kernels/bound_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/core/kernels/every_target.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::Draw;

class BoundSearchTest : public TargetTest {};

TEST_P(BoundSearchTest, FindsWhatPlainLoopsFind) {
  Draw draw(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> bounds(static_cast<std::size_t>(draw.Int(0, 64)));
    for (float& bound : bounds) {
      // Some are equal.
      bound = static_cast<float>(draw.Int(-4, 4));
      if (draw.Int(0, 9) == 0) bound = draw.Int(0, 1) == 0 ? kInfinity : -kInfinity;
    }
    const auto cut = static_cast<float>(draw.Int(-5, 5));
    std::uint64_t bits = 0;
    std::int64_t count = 0;
    float largest = -kInfinity;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (bounds[i] >= cut) {
        bits |= std::uint64_t{1} << i;
        ++count;
      }
      if (bounds[i] < kInfinity) largest = std::max(largest, bounds[i]);
    }
    ASSERT_EQ(BoundsFrom(bounds, cut), bits) << round;
    ASSERT_EQ(CountBoundsFrom(bounds, cut), count) << round;
    ASSERT_EQ(LargestFiniteBound(bounds), largest) << round;
  }
}

TEST_P(BoundSearchTest, KnowsTheSmallestAndTheLargest) {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(BoundsFrom({0.0f, kLeast, -kLeast, kInfinity}, kLeast), 0b1010);
  EXPECT_EQ(BoundsFrom(std::vector<float>(64, -kInfinity), -kInfinity), ~std::uint64_t{0});
  EXPECT_EQ(LargestFiniteBound(std::vector<float>(20, kInfinity)), -kInfinity);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, BoundSearchTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
