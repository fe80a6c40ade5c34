// The bounds of blocks by their balls, against float64 logits.
#include "core/attention/ball_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/attention/score_pair.h"
#include "tests/core/kernels/sketched_rows.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup {
namespace {

using testing::Draw;
using testing::KeptRows;
using testing::MagnitudeOf;
using testing::NormalFloats;
using testing::Product;

// Rows of a block, and a query's bound on their logits.
class BallBoundsTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3 * kernels::kPanelRows;

  static constexpr Score kScores[] = {Score::kDot, Score::kScaledDot, Score::kCosine,
                                      Score::kEuclidean, Score::kSquaredEuclidean};

  static double NormOf(const std::vector<float>& vector) {
    return std::sqrt(Product(vector.data(), vector.data(), std::ssize(vector)));
  }
  static ScanPlan PlanOf(Score score, double temperature, std::int64_t dim) {
    return {.options = {.score = score, .temperature = temperature},
            .key_dims = {.begin = 0, .count = dim}};
  }
  static double BoundOf(const ScanPlan& plan, const KeptRows& rows,
                        const std::vector<float>& query) {
    std::vector<float> centres(kernels::kBlockBalls * kernels::CentreFloats(std::ssize(query)));
    const BallBounds bounds(plan, {.components = query.data(), .norm = NormOf(query)});
    double highest = -kInfiniteLogit;
    for (const kernels::KeyBall& ball : kernels::MakeKeyBalls(rows.view(), centres.data())) {
      const kernels::KeyBall* const pointer = &ball;
      float product = 0;
      kernels::CentreProducts(query.data(), std::ssize(query), {&pointer, 1}, &product);
      highest = std::max(highest, bounds.HighestIn(ball, product));
    }
    return highest;
  }
  static double HighestOf(const ScanPlan& plan, const KeptRows& rows,
                          const std::vector<float>& query) {
    double highest = -kInfiniteLogit;
    for (std::int64_t row = 0; row < rows.view().row_count; ++row) {
      const double score =
          ScorePair(plan.options.score, query.data(), rows.key(row), std::ssize(query));
      highest = std::max(highest, score / plan.options.temperature);
    }
    return highest;
  }
  // Keys around a mean at a distance from the origin, in standard deviations of a key from it.
  static KeptRows Cluster(std::int64_t dim, double distance, std::uint64_t seed) {
    std::vector<float> mean = NormalFloats(dim, seed, distance);
    std::vector<float> keys = NormalFloats(kRows * dim, seed + 1);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] += mean[i % mean.size()];
    return {{.key_dim = dim, .value_dim = 1}, kRows, std::move(keys), NormalFloats(kRows, 1)};
  }
};

TEST_F(BallBoundsTest, NoLogitIsHigher) {
  Draw draw(1);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t dim = draw.Int(32, 90);
    const KeptRows rows = Cluster(dim, draw.Coin() ? draw.Real(0, 3) : draw.Real(3, 1000), i);
    std::vector<float> query = NormalFloats(dim, 1000 + i, std::exp(draw.Real(-3, 3)));
    const double how = draw.Real(0, 1);
    const double factor = draw.Coin() ? 1 : draw.Real(-2, 2);
    for (std::int64_t j = 0; j < dim && how < 0.6; ++j) {
      // One of the keys, or near to it, or in its direction.
      query[j] = static_cast<float>((how < 0.2 ? 0.0 : 0.1) * query[j] + factor * rows.key(3)[j]);
    }
    for (const Score score : kScores) {
      const ScanPlan plan = PlanOf(score, std::exp(draw.Real(-5, 3)), dim);
      const double highest = HighestOf(plan, rows, query);
      ASSERT_GE(BoundOf(plan, rows, query), highest - std::abs(highest) * 1e-12)
          << "case " << i << " score " << static_cast<int>(score);
    }
  }
}

TEST_F(BallBoundsTest, NoLogitIsHigherWhateverTheKeys) {
  for (const kernels::Fill fill : kernels::kFills) {
    for (const std::int64_t dim : {32, 61}) {
      const KeptRows rows({.key_dim = dim, .value_dim = 1}, kRows,
                          kernels::Filled(fill, kRows, dim, 3), NormalFloats(kRows, 1));
      for (int i = 0; i < 10; ++i) {
        const std::vector<float> query = NormalFloats(dim, 10 + i, i < 5 ? 1 : 1e-3);
        for (const Score score : kScores) {
          const ScanPlan plan = PlanOf(score, 0.1, dim);
          const double highest = HighestOf(plan, rows, query);
          ASSERT_GE(BoundOf(plan, rows, query), highest - std::abs(highest) * 1e-12)
              << "fill " << static_cast<int>(fill) << " score " << static_cast<int>(score);
        }
      }
    }
  }
}

// The bound is what a key on the ball's edge could reach. Here some key is near to it.
TEST_F(BallBoundsTest, IsCloseWhereTheBallIsSmall) {
  constexpr std::int64_t kDim = 40;
  const KeptRows rows = Cluster(kDim, 100, 1);
  const std::vector<float> query = NormalFloats(kDim, 7, 100);
  std::vector<float> centres(kernels::kBlockBalls * kernels::CentreFloats(kDim));
  double radius = 0, centre_norm = 0;
  for (const kernels::KeyBall& ball : kernels::MakeKeyBalls(rows.view(), centres.data())) {
    radius = std::max(radius, ball.radius);
    centre_norm = std::max(centre_norm, ball.centre_norm);
  }
  const double gap = 2 * radius;
  const auto excess = [&](Score score) {
    const ScanPlan plan = PlanOf(score, 1, kDim);
    return BoundOf(plan, rows, query) - HighestOf(plan, rows, query);
  };
  EXPECT_LE(excess(Score::kDot), gap * NormOf(query));
  EXPECT_LE(excess(Score::kCosine), 1.1 * gap / centre_norm);
  EXPECT_LE(excess(Score::kEuclidean), gap);
  EXPECT_LE(excess(Score::kSquaredEuclidean), 2 * gap * (NormOf(query) + centre_norm));
}

TEST_F(BallBoundsTest, NoBoundIsOutsideTheSpanOfItsRange) {
  Draw draw(5);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t dim = draw.Int(32, 90);
    const std::vector<float> query = NormalFloats(dim, i, std::exp(draw.Real(-20, 20)));
    std::vector<std::vector<float>> centres;
    std::vector<kernels::KeyBall> balls;
    BallsRange range;
    while (balls.size() < 6) {
      std::vector<float>& centre =
          centres.emplace_back(NormalFloats(dim, i + balls.size(), std::exp(draw.Real(-20, 20))));
      // Some have the query's direction, or its opposite: their products are the most extreme.
      if (draw.Coin()) {
        const double factor = draw.Real(-3, 3);
        for (std::int64_t j = 0; j < dim; ++j) centre[j] = static_cast<float>(factor * query[j]);
      }
      centre.resize(kernels::CentreFloats(dim));
      balls.push_back({.centre = centre.data(),
                       .centre_norm = NormOf(centre),
                       .radius = draw.Coin() ? 0 : std::exp(draw.Real(-10, 10))});
    }
    for (std::size_t b = 0; b < balls.size(); b += 2) range.Add({balls[b], balls[b + 1]});
    for (const Score score : kScores) {
      const BallBounds bounds(PlanOf(score, std::exp(draw.Real(-5, 3)), dim),
                              {.components = query.data(), .norm = NormOf(query)});
      const BallBounds::Span span = bounds.SpanOf(range);
      for (const kernels::KeyBall& ball : balls) {
        const kernels::KeyBall* const pointer = &ball;
        float product = 0;
        kernels::CentreProducts(query.data(), dim, {&pointer, 1}, &product);
        const double highest = bounds.HighestIn(ball, product);
        ASSERT_GE(highest, span.lowest) << "case " << i << " score " << static_cast<int>(score);
        ASSERT_LE(highest, span.highest) << "case " << i << " score " << static_cast<int>(score);
      }
    }
  }
}

TEST_F(BallBoundsTest, ABallAroundTheOriginMayHaveAnyCosine) {
  constexpr std::int64_t kDim = 40;
  const KeptRows rows = Cluster(kDim, 0, 1);
  EXPECT_GE(BoundOf(PlanOf(Score::kCosine, 1, kDim), rows, NormalFloats(kDim, 7)), 1);
}

}  // namespace
}  // namespace softlookup
