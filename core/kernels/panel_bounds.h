#ifndef SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_
#define SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/key_sketch.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Upper bounds on the scores of queries and the keys of a block, made from the block's sketch. A
// query q becomes codes of seven bits and a unit u. The sketch has a key k as codes c and a scale s
// (key_sketch.h). By Cauchy and Schwarz,
//
//   |q.k - u s (codes of q . c)| <= |u codes of q| |k - s c| + |q - u codes of q| |k|.
//
// Products of codes are summed exactly, in integers. So on all CPUs with fused multiply-adds, the
// bits of a bound depend only on its query and block. They do not depend on the vector width or on
// the other queries.

// The largest |code| of a query. It is so small that 16 bits hold the sum of two products of a
// key's stored code and a query's code. AVX2 forms sums of two such products in 16 bits.
inline constexpr int kQueryCodeMax = 63;
static_assert(2 * (kKeyCodeMax + 128) * kQueryCodeMax < 1 << 15);

// Queries in the form that BoundPanels() takes. Several threads may read them, but not during
// Pack(). The next Pack() overwrites them, and reuses their buffer.
class SketchQueries {
 public:
  // Each queries[q] points to key_dim finite floats. query_count is at most kTileQueries.
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);
  // Returns a copy of the queries [begin, end).
  SketchQueries Some(int begin, int end) const;

  int count() const { return count_; }
  // Returns one element for each group of 4 components, with their codes, one signed byte each. The
  // codes past key_dim are 0.
  const std::uint32_t* codes(int query) const {
    return codes_.data() + static_cast<std::size_t>(query) * stride_;
  }
  // A component is about its code times this unit.
  float unit(int query) const { return units_[query]; }
  // norm() returns an upper bound on |unit * codes|, and error() one on |query - unit * codes|.
  float norm(int query) const { return norms_[query]; }
  float error(int query) const { return errors_[query]; }
  // Returns 128 times the sum of the query's codes. A key's stored codes are each 128 too large, so
  // their product with the query's codes is too large by this number.
  std::int32_t excess(int query) const { return excesses_[query]; }

 private:
  int count_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> codes_;
  std::array<float, kTileQueries> units_ = {}, norms_ = {}, errors_ = {};
  std::array<std::int32_t, kTileQueries> excesses_ = {};
};

// One float for each row of a sketch. The 16 floats of a slice are contiguous.
struct RowFloats {
  const float* first = nullptr;   // The float of lane 0 of slice 0.
  std::int64_t slice_stride = 0;  // From one slice's first float to the next slice's.

  const float* at(std::int64_t slice) const { return first + slice * slice_stride; }
};

// The bound of row r for query q is
//
//   factors[q].product * dot * scales[r] + factors[q].error * errors[r]
//     + factors[q].norm * norms[r] + bias[r] + factors[q].offset
//
// where dot is the dot product of the codes of q and r. If root_divisor is above 0, the bound is
// -sqrt(max(0, -s)) / root_divisor instead, where s is this sum.
struct BoundFactors {
  float product = 0;
  float error = 0;
  float norm = 0;
  float offset = 0;
};
struct BoundTerms {
  RowFloats scales, errors;
  RowFloats norms;  // Count as 0 if `first` is null.
  RowFloats bias;   // Counts as 0 if `first` is null.
  float root_divisor = 0;
};

// How the bounds of a panel's 16 rows are joined into one float.
enum class PanelBound {
  kLargest,  // The largest of them.
  // For query q, an upper bound on the sum of exp(bound - references[q]) over the rows. It is at
  // most kMassExcess times the sum. In the sum, an exponent below -87 counts as about -87, even
  // that of a row whose bound is -infinity. The result is infinity if float32 cannot hold it. This
  // can happen only if an exponent is above 85.
  kMass,
};
inline constexpr double kMassExcess = 1.0625;

// Joins the bounds of each panel's rows as `form` says. Sets bounds[q * stride + panel] to the
// result, for each query q and each panel of the sketch. `factors` and `references` have an element
// for each query. kLargest does not read `references`.
//
// Rounding changes the bound of a row by at most 2^-20 of the sum of the magnitudes of its terms.
// If the bound is a root, this holds for the sum under the root. The exponents of kMass are off by
// another 2^-20 of the reference's magnitude. They are raised by 2^-13 nats, which covers their
// roundings to exponent bits.
void BoundPanels(PanelBound form, const SketchView& sketch, const SketchQueries& queries,
                 const BoundFactors* factors, const float* references, const BoundTerms& terms,
                 std::int64_t stride, float* bounds);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_
