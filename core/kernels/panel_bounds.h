#ifndef SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_
#define SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/key_sketch.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Bounds on the scores of queries and the keys of a block, from its sketch. A query q becomes codes
// of seven bits and a unit u, as a key k becomes codes c and a scale s. By Cauchy and Schwarz,
//
//   |q.k - u s (codes of q . c)| <= |u codes of q| |k - s c| + |q - u codes of q| |k|.
//
// Sums over components are exact in integers. So the bits of a bound depend only on its query and
// block, not on the vector width or the other queries, on all CPUs with fused multiply-adds.

// The largest code of a query. With it, two products of a stored code and a query's code have a sum
// that 16 bits hold.
inline constexpr int kQueryCodeMax = 63;
static_assert(2 * (kKeyCodeMax + 128) * kQueryCodeMax < 1 << 15);

// Queries in the form that BoundPanels takes. Several threads may read them, but not during Pack.
// Keeps its buffers for the next Pack.
class SketchQueries {
 public:
  // Each queries[q] points to key_dim finite floats.
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);
  // Returns the queries [begin, end) of these.
  SketchQueries Some(int begin, int end) const;

  int count() const { return count_; }
  // Returns [groups of 4 components], four codes in each.
  const std::uint32_t* codes(int query) const {
    return codes_.data() + static_cast<std::size_t>(query) * stride_;
  }
  // A component is about its code times this.
  float unit(int query) const { return units_[query]; }
  // Upper bounds on |unit * codes| and on |query - unit * codes|.
  float norm(int query) const { return norms_[query]; }
  float error(int query) const { return errors_[query]; }
  // What is too much in a product with the stored codes of a key, which are 128 too large: 128
  // times the sum of the query's codes.
  std::int32_t excess(int query) const { return excesses_[query]; }

 private:
  int count_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> codes_;
  std::array<float, kTileQueries> units_ = {}, norms_ = {}, errors_ = {};
  std::array<std::int32_t, kTileQueries> excesses_ = {};
};

// One float for each row of a sketch. Those of a slice are contiguous.
struct RowFloats {
  const float* first = nullptr;   // Of slice 0.
  std::int64_t slice_stride = 0;  // Floats from a slice's first to the next one's.

  const float* at(std::int64_t slice) const { return first + slice * slice_stride; }
};

// The bound of row r for query q is
//
//   factors[q].product * dot * scales[r] + factors[q].error * errors[r]
//     + factors[q].norm * norms[r] + bias[r] + factors[q].offset
//
// where dot is the product of the codes. If root_divisor is above 0, the bound is -sqrt(max(0, -s))
// / root_divisor instead, where s is this sum.
struct BoundFactors {
  float product = 0;
  float error = 0;
  float norm = 0;
  float offset = 0;
};
struct BoundTerms {
  RowFloats scales, errors;
  RowFloats norms;  // Not set: 0.
  RowFloats bias;   // Not set: 0.
  float root_divisor = 0;
};

// What the bounds of a panel's rows become.
enum class PanelBound {
  kLargest,  // The largest of them.
  // At least the sum of exp(bound - reference), and at most kMassExcess times this. An exponent
  // below -87 counts as about -87. Infinity if exponents are above 87.
  kMass,
};
inline constexpr double kMassExcess = 1.0625;

// Sets bounds[q * stride + panel] to what the bounds of the panel's rows become, for each panel of
// the sketch. factors and references point to an element for each query; kLargest does not read the
// references.
//
// Rounding can change the bound of a row, or its square if it is a root, by 2^-20 of the sum of the
// sizes of its terms and of the reference. Exponents are raised by 2^-13 nats against their own
// roundings.
void BoundPanels(PanelBound form, const SketchView& sketch, const SketchQueries& queries,
                 const BoundFactors* factors, const float* references, const BoundTerms& terms,
                 std::int64_t stride, float* bounds);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PANEL_BOUNDS_H_
