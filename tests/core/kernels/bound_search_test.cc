// Searches among bounds on every instruction set of this machine, against plain loops.
#include "core/kernels/bound_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/core/kernels/every_target.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::Draw;

class BoundSearchTest : public TargetTest {
 protected:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
};

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

TEST_P(BoundSearchTest, AddsUpSmallBounds) {
  Draw draw(7);
  for (int round = 0; round < 200; ++round) {
    const auto below = static_cast<float>(std::exp(draw.Real(-40, 40)));
    const float inverse_unit = (1 << 20) / below;
    std::vector<float> bounds(static_cast<std::size_t>(draw.Int(0, 5000)));
    std::int64_t expected = 0;
    for (float& bound : bounds) {
      bound = draw.Chance(0.1) ? 0 : static_cast<float>(below * std::exp(draw.Real(-20, 2)));
      if (draw.Chance(0.1)) bound = draw.Coin() ? kInfinity : std::nextafter(below, 0.0f);
      if (bound < below) expected += static_cast<std::int64_t>(std::ceil(bound * inverse_unit));
    }
    ASSERT_EQ(SumOfBoundsBelow(bounds, below, inverse_unit), expected) << round;
  }
}

TEST_P(BoundSearchTest, FindsGroups) {
  Draw draw(5);
  for (int round = 0; round < 500; ++round) {
    const std::int64_t size = draw.Int(1, 70), count = draw.Int(0, 20);
    std::vector<float> bounds(static_cast<std::size_t>(size * count));
    for (float& bound : bounds) bound = draw.Int(0, 40) == 0 ? 2.0f : 1.0f;
    std::vector<std::int32_t> expected = {-1}, found = {-1};
    for (std::int64_t group = 0; group < count; ++group) {
      const auto begin = bounds.begin() + group * size;
      if (std::find(begin, begin + size, 2.0f) != begin + size) {
        expected.push_back(static_cast<std::int32_t>(group));
      }
    }
    FindGroupsFrom(bounds, size, 2, found);
    ASSERT_EQ(found, expected) << round;
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
