#include "client/plot/axis_ticks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace softlookup::plot {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using ::testing::SizeIs;

TEST(TicksTest, LinearTicksAreRound) {
  EXPECT_THAT(LinearTicks(0, 1, 6), Pointwise(DoubleEq(), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_THAT(LinearTicks(-7, 18, 6), ElementsAre(-5, 0, 5, 10, 15));
  EXPECT_THAT(LinearTicks(1e6, 1.3e6, 3), ElementsAre(1e6, 1.1e6, 1.2e6, 1.3e6));
  EXPECT_FALSE(std::signbit(LinearTicks(-1, 1, 4)[2]));
}

TEST(TicksTest, LogTicksArePowersOfTenOrFinerWhereThereIsOne) {
  EXPECT_THAT(LogTicks(0.01, 100, 8), Pointwise(DoubleNear(1e-12), {0.01, 0.1, 1.0, 10.0, 100.0}));
  EXPECT_THAT(LogTicks(0.02, 50, 8), Pointwise(DoubleNear(1e-12), {0.1, 1.0, 10.0}));
  EXPECT_THAT(LogTicks(1e-6, 1e6, 8), SizeIs(7));
  EXPECT_THAT(LogTicks(2, 50, 8), Pointwise(DoubleNear(1e-12), {2.0, 5.0, 10.0, 20.0, 50.0}));
  EXPECT_THAT(LogTicks(3, 4, 5), Pointwise(DoubleNear(1e-12), {3.0, 3.2, 3.4, 3.6, 3.8, 4.0}));
}

}  // namespace
}  // namespace softlookup::plot
