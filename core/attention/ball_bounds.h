#ifndef SOFTLOOKUP_CORE_ATTENTION_BALL_BOUNDS_H_
#define SOFTLOOKUP_CORE_ATTENTION_BALL_BOUNDS_H_

#include <algorithm>
#include <limits>

#include "core/attention/block_scan.h"
#include "core/kernels/key_ball.h"

namespace softlookup {

// Bounds over all balls of some blocks.
struct BallsRange {
  double depth_min = std::numeric_limits<double>::infinity();  // The least radius - |centre|.
  double reach_max = 0;                                        // The largest radius + |centre|.

  void Add(const kernels::KeyBalls& balls) {
    for (const kernels::KeyBall& ball : balls) {
      depth_min = std::min(depth_min, ball.radius - ball.centre_norm);
      reach_max = std::max(reach_max, ball.radius + ball.centre_norm);
    }
  }
};

// Bounds the logits of one head query over whole blocks, by the balls that hold the blocks' keys
// (key_ball.h).
class BallBounds {
 public:
  BallBounds(const ScanPlan& plan, const HeadQuery& query);

  // Returns an upper bound on the logits of the ball's keys. `product` must be the product of the
  // query and the ball's centre, from kernels::CentreProducts.
  double HighestIn(const kernels::KeyBall& ball, float product) const;

  struct Span {
    double lowest = -std::numeric_limits<double>::infinity();
    double highest = std::numeric_limits<double>::infinity();
  };
  // Returns bounds on HighestIn(ball) for every ball that `balls` covers, in whatever direction its
  // centre lies. They are infinite for all scores but DOT and SCALED_DOT.
  Span SpanOf(const BallsRange& balls) const;

 private:
  // In both functions, `product` is an upper bound on the product of the query and the centre.
  double HighestCosineIn(const kernels::KeyBall& ball, double product) const;
  double LeastDistanceTo(const kernels::KeyBall& ball, double product) const;

  const Score score_;
  const double scale_;     // Turns a product, a cosine or a distance into a logit, up to the sign.
  const double norm_;      // |query|
  const double rounding_;  // CentreProducts are off by up to this part of |query| |centre|.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BALL_BOUNDS_H_
