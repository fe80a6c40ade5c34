// Balls around the keys of blocks, and the products with their centres, on every instruction set of
// this machine: against plain loops in float64, and bit for bit against themselves.
#include "core/kernels/key_ball.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/score_rows.h"
#include "hwy/targets.h"
#include "tests/core/kernels/every_target.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {
namespace {

using softlookup::testing::KeptRows;
using softlookup::testing::NormalFloats;
using softlookup::testing::Product;

class KeyBallTest : public TargetTest {};

double Distance(const float* a, const float* b, std::int64_t dim) {
  double square = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    square += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  }
  return std::sqrt(square);
}

TEST_P(KeyBallTest, HoldsAllKeys) {
  for (const StorageType storage : {StorageType::kFloat32, StorageType::kBfloat16}) {
    for (const Fill fill : kFills) {
      for (const std::int64_t dim : {32, 37, 300}) {
        SCOPED_TRACE(::testing::Message() << "fill " << static_cast<int>(fill) << " dim " << dim);
        const KeptRows rows({.key_dim = dim, .value_dim = 1, .storage = storage}, 5 * kPanelRows,
                            Filled(fill, 5 * kPanelRows, dim, 7), NormalFloats(5 * kPanelRows, 1));
        std::vector<float> centres(static_cast<std::size_t>(kBlockBalls * CentreFloats(dim)));
        const KeyBalls balls = MakeKeyBalls(rows.view(), centres.data());
        for (const KeyBall& ball : balls) {
          ASSERT_NEAR(ball.centre_norm, std::sqrt(Product(ball.centre, ball.centre, dim)),
                      ball.centre_norm * 1e-12);
        }
        for (std::int64_t row = 0; row < rows.view().row_count; ++row) {
          ASSERT_TRUE(std::ranges::any_of(balls,
                                          [&](const KeyBall& ball) {
                                            return Distance(rows.key(row), ball.centre, dim) <=
                                                   ball.radius;
                                          }))
              << "row " << row;
        }
      }
    }
  }
}

// Rows of one cluster, or of two of which the second begins anywhere in the block. The radius is
// about the distance of a key from its cluster's mean.
TEST_P(KeyBallTest, AreSmallWhereKeysAreAlike) {
  constexpr std::int64_t kDim = 64, kRows = 1024;
  for (const std::int64_t second : {std::int64_t{0}, std::int64_t{5}, std::int64_t{300}, kRows}) {
    const std::vector<float> means = NormalFloats(2 * kDim, 1, 3);
    std::vector<float> keys = NormalFloats(kRows * kDim, 2, 0.1);
    double farthest = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const float* const mean = means.data() + (row < second ? 0 : kDim);
      for (std::int64_t i = 0; i < kDim; ++i) keys[row * kDim + i] += mean[i];
      farthest = std::max(farthest, Distance(keys.data() + row * kDim, mean, kDim));
    }
    const KeptRows rows({.key_dim = kDim, .value_dim = 1}, kRows, keys, NormalFloats(kRows, 3));
    std::vector<float> centres(kBlockBalls * CentreFloats(kDim));
    for (const KeyBall& ball : MakeKeyBalls(rows.view(), centres.data())) {
      EXPECT_LE(ball.radius, 1.2 * farthest) << "the second cluster begins at row " << second;
    }
  }
}

bool Holds(const KeyBalls& balls, const KeyBall& member, std::int64_t dim) {
  return std::ranges::any_of(balls, [&](const KeyBall& ball) {
    return Distance(member.centre, ball.centre, dim) + member.radius <= ball.radius;
  });
}

TEST_P(KeyBallTest, AGroupsBallsHoldThoseOfItsBlocks) {
  for (const std::int64_t dim : {1, 32, 37, 300}) {
    for (const double deviation : {0.0, 1e-20, 1.0, 1e15}) {
      const std::int64_t size = CentreFloats(dim);
      std::vector<KeyBall> members;
      std::vector<std::vector<float>> centres_of_members;
      for (std::uint64_t i = 0; i < 2 * kBallGroupBlocks; ++i) {
        std::vector<float>& centre =
            centres_of_members.emplace_back(NormalFloats(dim, 100 + i, deviation));
        centre.resize(static_cast<std::size_t>(size));
        members.push_back({.centre = centre.data(),
                           .centre_norm = std::sqrt(Product(centre.data(), centre.data(), dim)),
                           .radius = deviation * static_cast<double>(i % 3)});
      }
      std::vector<float> centres(static_cast<std::size_t>(kBlockBalls * size), 1.0f);
      const KeyBalls balls = MakeGroupBalls(members, dim, centres.data());
      for (const KeyBall& ball : balls) {
        EXPECT_NEAR(ball.centre_norm, std::sqrt(Product(ball.centre, ball.centre, dim)),
                    ball.centre_norm * 1e-12);
        for (std::int64_t i = dim; i < size; ++i) EXPECT_EQ(ball.centre[i], 0) << "padding";
      }
      for (const KeyBall& member : members) {
        EXPECT_TRUE(Holds(balls, member, dim)) << dim << " components, deviation " << deviation;
      }
    }
  }
}

// Blocks of three clusters, in any proportion: one ball holds one of them, the other two.
TEST_P(KeyBallTest, AGroupsBallsAreSmall) {
  constexpr std::int64_t kDim = 64;
  constexpr double kRadius = 0.9;
  const std::vector<float> means = NormalFloats(3 * kDim, 1);
  const double apart = Distance(means.data(), means.data() + kDim, kDim);
  for (const std::int64_t first : {2, 6, 12}) {
    std::vector<KeyBall> members;
    for (std::int64_t i = 0; i < 2 * kBallGroupBlocks; ++i) {
      const float* const mean = means.data() + (i < first ? 0 : i < 14 ? 1 : 2) * kDim;
      members.push_back(
          {.centre = mean, .centre_norm = std::sqrt(Product(mean, mean, kDim)), .radius = kRadius});
    }
    std::vector<float> centres(kBlockBalls * CentreFloats(kDim));
    double largest = 0;
    for (const KeyBall& ball : MakeGroupBalls(members, kDim, centres.data())) {
      largest = std::max(largest, ball.radius);
    }
    // The smallest ball around two of them has a radius of apart / 2 + kRadius. Three means can be
    // a little further apart than these two.
    EXPECT_LE(largest, 1.25 * (apart / 2 + kRadius)) << first << " balls of the first cluster";
  }
}

TEST_P(KeyBallTest, ProductsAreWithinTheirBound) {
  constexpr int kCount = 5;
  for (const std::int64_t dim : {1, 15, 16, 17, 31, 48, 100, 1000}) {
    for (const int exponent : {-60, 0, 40}) {
      const std::vector<float> components =
          NormalFloats(kCount * dim, 3, std::ldexp(1.0, std::min(exponent, 20)));
      const std::int64_t size = CentreFloats(dim);
      std::vector<float> centres(static_cast<std::size_t>(kCount * size));
      const std::vector<float> query = NormalFloats(dim, 4, std::ldexp(1.0, exponent));
      std::vector<KeyBall> balls(kCount);
      std::vector<const KeyBall*> pointers;
      for (int i = 0; i < kCount; ++i) {
        std::copy_n(components.begin() + i * dim, dim, centres.begin() + i * size);
        balls[i].centre = centres.data() + i * size;
        pointers.push_back(&balls[i]);
      }
      std::vector<float> products(kCount), alone(1);
      CentreProducts(query.data(), dim, pointers, products.data());
      for (int i = 0; i < kCount; ++i) {
        const double expected = Product(query.data(), balls[i].centre, dim);
        const double norms = std::sqrt(Product(query.data(), query.data(), dim) *
                                       Product(balls[i].centre, balls[i].centre, dim));
        ASSERT_NEAR(products[i], expected, static_cast<double>(dim) * 0x1p-23 * norms + 0x1p-100)
            << dim << " components";
        CentreProducts(query.data(), dim, {&pointers[i], 1}, alone.data());
        ASSERT_EQ(alone[0], products[i]);
      }
    }
  }
}

TEST_P(KeyBallTest, HasTheSameBitsOnEveryTargetThatFuses) {
  if (!FusesMultiplyAdds()) GTEST_SKIP() << "rounds products";
  constexpr std::int64_t kDim = 77;
  const KeptRows rows({.key_dim = kDim, .value_dim = 1}, 3 * kPanelRows, 5);
  const std::vector<float> query = NormalFloats(kDim, 9);
  const auto find = [&] {
    std::vector<float> centres(kBlockBalls * CentreFloats(kDim));
    const KeyBalls balls = MakeKeyBalls(rows.view(), centres.data());
    std::vector<float> found = centres;
    for (const KeyBall& ball : balls) {
      const KeyBall* const pointer = &ball;
      CentreProducts(query.data(), kDim, {&pointer, 1}, &found.emplace_back());
      found.push_back(static_cast<float>(ball.radius));
    }
    return found;
  };
  const std::vector<float> here = find();
  hwy::SetSupportedTargetsForTest(0);  // The best there is.
  EXPECT_EQ(find(), here);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, KeyBallTest, EveryTarget(), TargetName);

}  // namespace
}  // namespace softlookup::kernels
