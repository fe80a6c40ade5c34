#ifndef SOFTLOOKUP_CORE_ATTENTION_LOGIT_BOUNDS_H_
#define SOFTLOOKUP_CORE_ATTENTION_LOGIT_BOUNDS_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "core/attention/block_scan.h"
#include "core/kernels/key_sketch.h"
#include "core/kernels/panel_bounds.h"

namespace softlookup {

// Upper bounds over the keys of all sketches that a head query looks at. A key k has the codes c
// and the scale s (key_sketch.h).
struct SketchBounds {
  float error_max = 0;           // Of |k - s c|.
  float relative_error_max = 0;  // Of |k - s c| / |k|.
  float norm_max = 0;            // Of |k| rounded to float32.

  void Add(const kernels::SketchView& sketch);
};

// The numbers of one head query that turn the product of its codes and a key's codes into an upper
// bound on the key's logit. kernels::BoundPanels takes factors() and the terms of SketchTerms.
// LowerOf() and gap() say how far below its bound a row's logit can be.
class LogitBounds {
 public:
  LogitBounds() = default;
  // `index` is the index of the query in `packed`.
  LogitBounds(const ScanPlan& plan, const HeadQuery& query, const kernels::SketchQueries& packed,
              int index, const SketchBounds& sketches);

  const kernels::BoundFactors& factors() const { return factors_; }
  // Returns a logit that some row of a panel is proved to reach. `upper` is the largest of the
  // bounds on the logits of the panel's rows.
  double LowerOf(double upper) const;
  // Returns the most by which a row's logit can be below its bound. Infinity for EUCLIDEAN, for
  // which none is computed.
  double gap() const { return euclidean_temperature_ == 0 ? gap_ : kInfiniteLogit; }

 private:
  kernels::BoundFactors factors_;
  // The most by which a row's logit can be below its bound. For EUCLIDEAN, the logit here is the
  // negative squared distance.
  double gap_ = 0;
  double euclidean_temperature_ = 0;  // EUCLIDEAN: the temperature. Else 0.
};

// Returns the margin to allow for rounding where a logit is formed in float64. `logit` is that
// logit, or another one of about the same magnitude.
inline double LogitRounding(double logit) { return 1e-6 + std::abs(logit) * 1e-12; }

// The logit of every row is in [lowest, highest]. Only the row of a key much like the query has a
// logit of at least likely_highest.
struct LogitRangeOfRows {
  double lowest = 0;
  double highest = 0;
  double likely_highest = 0;
};
// Returns the range for rows whose keys have norms of at most norm_max.
LogitRangeOfRows LogitRange(const ScanPlan& plan, const HeadQuery& query, double norm_max);

// The terms that BoundPanels takes for one block. Terms that the block's sketch does not hold are
// in buffers of this object, which the next Prepare() overwrites.
class SketchTerms {
 public:
  // Prepares the terms for the queries of a plan. Rows that `block`'s mask leaves out get bounds of
  // -inf. `block` must have a sketch.
  void Prepare(const ScanPlan& plan, const PositionedBlock& block);
  const kernels::BoundTerms& terms() const { return terms_; }

 private:
  using Rows = std::array<float, kernels::kBlockRowsMax>;

  kernels::BoundTerms terms_;
  alignas(64) Rows scales_, errors_, bias_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOGIT_BOUNDS_H_
