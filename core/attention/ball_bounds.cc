#include "core/attention/ball_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/attention/precision_path.h"

namespace softlookup {
namespace {

// The roundings of float64 change a bound by at most this part of its terms.
constexpr double kBallRounding = 0x1p-40;

}  // namespace

BallBounds::BallBounds(const ScanPlan& plan, const HeadQuery& query)
    : score_(plan.options.score),
      scale_(ScaleOf(plan) / plan.options.temperature),
      norm_(query.norm),
      rounding_(static_cast<double>(plan.key_dims.count) * 0x1p-23) {}

double BallBounds::HighestIn(const kernels::KeyBall& ball, float product) const {
  // The largest product that the error of CentreProducts allows.
  const double highest_product = product + rounding_ * norm_ * ball.centre_norm + 0x1p-100;
  double highest = kInfiniteLogit;
  switch (score_) {
    case Score::kDot:
    case Score::kScaledDot:
      highest = scale_ * (highest_product + norm_ * ball.radius);
      break;
    case Score::kCosine:
      highest = scale_ * HighestCosineIn(ball, highest_product);
      break;
    case Score::kEuclidean:
      highest = -scale_ * LeastDistanceTo(ball, highest_product);
      break;
    case Score::kSquaredEuclidean: {
      const double distance = LeastDistanceTo(ball, highest_product);
      highest = -scale_ * distance * distance;
      break;
    }
    case Score::kUnspecified:
      break;
  }
  return highest + std::abs(highest) * kBallRounding;
}

// By Cauchy and Schwarz, the exact product with a centre is between -|query| |centre| and |query|
// |centre|. HighestIn takes at least the exact product, and at most twice the error of
// CentreProducts more.
BallBounds::Span BallBounds::SpanOf(const BallsRange& balls) const {
  if (score_ != Score::kDot && score_ != Score::kScaledDot) return {};
  constexpr double kRounding = 16 * kBallRounding;
  const double lowest = scale_ * norm_ * balls.depth_min;
  const double highest = scale_ * (norm_ * balls.reach_max * (1 + 2 * rounding_) + 0x1p-98);
  return {.lowest = lowest - std::abs(scale_ * norm_ * balls.reach_max) * kRounding,
          .highest = highest * (1 + kRounding)};
}

// Seen from the origin, the ball covers all directions within an angle of asin(radius / |centre|)
// from its centre's direction.
double BallBounds::HighestCosineIn(const kernels::KeyBall& ball, double product) const {
  const double sine = ball.radius / ball.centre_norm;
  // Near 1, a rounding of the sine would count many times over in the cosine. At 1 or more, the
  // ball may hold the origin, and so keys of every direction. A ball that is the origin alone has a
  // sine of NaN, for which the bound is 1, too.
  if (!(sine < 0.999)) return 1;
  const double cosine = std::sqrt(1 - sine * sine);
  const double to_centre = std::max(-1.0, product / (norm_ * ball.centre_norm));
  if (to_centre >= cosine) return 1;
  // The cosine of the difference of two angles: the one between the query and the centre, and the
  // one that the ball covers.
  return to_centre * cosine + std::sqrt(1 - to_centre * to_centre) * sine + kBallRounding;
}

double BallBounds::LeastDistanceTo(const kernels::KeyBall& ball, double product) const {
  const double squares = norm_ * norm_ + ball.centre_norm * ball.centre_norm;
  const double square = squares * (1 - kBallRounding) - 2 * product;
  return std::max(0.0, std::sqrt(std::max(0.0, square)) - ball.radius);
}

}  // namespace softlookup
