#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
#define SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// A sketch is a coarse copy of the keys of a block, in about a quarter of float32's bytes. A scan
// of the sketch bounds the score of every row, so that the rows that matter can be told from those
// that do not. Sums over components are exact in integers. So the bits of a bound depend only on
// its query and panel, not on the vector width or the neighbours, on all CPUs with fused
// multiply-adds.
//
// A key k is kept as codes c, one byte a component, and a scale s. Beside them are an upper bound
// on |k - s c| and the norm |k|. A query q becomes codes of seven bits and a unit u in the same
// way. By Cauchy and Schwarz,
//
//   |q.k - u s (codes of q . c)| <= |u codes of q| |k - s c| + |q - u codes of q| |k|.

// The largest code of a key. A code is stored plus 128.
inline constexpr int kKeyCodeMax = 127;
// The largest code of a query. With it, two products of a stored code and a query's code have a sum
// that 16 bits hold.
inline constexpr int kQueryCodeMax = 63;
static_assert(2 * (kKeyCodeMax + 128) * kQueryCodeMax < 1 << 15);

// A sketch has a panel for each of the block's full panels:
//
//   codes   [groups of 4 components][16 rows][4 components]
//   scales  [16 rows]  float32
//   errors  [16 rows]  float32, upper bounds on |k - s c|
//   norms   [16 rows]  float32, |k| rounded to nearest
//
// The last group is filled up with the code of 0.
struct SketchView {
  const std::byte* panels = nullptr;  // Null: the block has no sketch.
  std::int64_t panel_count = 0;
  std::int64_t key_dim = 0;
  // Over all rows: the largest error, the largest error divided by its norm, the largest norm, and
  // the smallest norm above 0. Rows of norm 0 have no part in the second.
  float error_max = 0;
  float relative_error_max = 0;
  float norm_max = 0;
  float norm_min = 0;

  std::int64_t group_count() const { return (key_dim + 3) / 4; }
  std::int64_t panel_bytes() const { return kPanelRows * (group_count() * 4 + 12); }
  const std::byte* panel(std::int64_t index) const { return panels + index * panel_bytes(); }
  const float* scales(std::int64_t index) const {
    return reinterpret_cast<const float*>(panel(index) + group_count() * 4 * kPanelRows);
  }
  const float* errors(std::int64_t index) const { return scales(index) + kPanelRows; }
  const float* norms(std::int64_t index) const { return scales(index) + 2 * kPanelRows; }
};

// Returns a shape whose panels have the bytes of a sketch's panels, to allocate them by.
constexpr PanelShape SketchShape(std::int64_t key_dim) {
  return {.key_dim = (key_dim + 3) / 4 * 4 + 4, .storage = StorageType::kInt8};
}

// Returns true if MakeSketch takes a block whose keys have this bound on |component|.
bool KeysFitSketch(float key_magnitude);

// Writes the sketch of the full panels of `block` to `panels`, which must have
// block.full_panel_count * SketchShape(key_dim).bytes() bytes, aligned to 4 bytes. The keys must
// fit. The view that it returns points to `panels`.
SketchView MakeSketch(const BlockView& block, std::byte* panels);

// Queries in the form that BoundPanels takes. Several threads may read them, but not during Pack.
// Keeps its buffers for the next Pack.
class SketchQueries {
 public:
  // Each queries[q] points to key_dim finite floats.
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

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
  // 128 times the sum of the codes, which the stored codes of keys add to each sum.
  std::int32_t excess(int query) const { return excesses_[query]; }

 private:
  int count_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> codes_;
  std::array<float, kTileQueries> units_ = {}, norms_ = {}, errors_ = {};
  std::array<std::int32_t, kTileQueries> excesses_ = {};
};

// One float for each row of a block. Those of a panel are contiguous.
struct RowFloats {
  const float* first = nullptr;   // Of row 0.
  std::int64_t panel_stride = 0;  // Floats from a panel's first to the next one's.

  const float* at(std::int64_t panel) const { return first + panel * panel_stride; }
};

// The bound of row r for query q is
//
//   factors[q].product * dot * scales[r] + factors[q].error * errors[r]
//     + factors[q].norm * norms[r] + bias[r] + factors[q].offset
//
// where dot is the product of the codes. If root_divisor is above 0, the bound is the negative root
// of minus this, or 0 if that is negative, divided by root_divisor.
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

// Returns true if the CPU has AVX-512 VNNI, which BoundPanels then uses. Thread-safe.
bool SketchUsesVnni();

// Sets bounds[q * stride + panel - panels.begin] to what the bounds of the rows become, for each
// panel of `panels`. factors and references point to an element for each query; kLargest does not
// read the references. Before that, rounding can change the bound of a row by 2^-20 of the sum of
// the sizes of its terms.
void BoundPanels(PanelBound form, const SketchView& sketch, PanelRange panels,
                 const SketchQueries& queries, const BoundFactors* factors, const float* references,
                 const BoundTerms& terms, std::int64_t stride, float* bounds);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
