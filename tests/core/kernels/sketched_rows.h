// Rows of many kinds, and their sketches.
#ifndef SOFTLOOKUP_TESTS_CORE_KERNELS_SKETCHED_ROWS_H_
#define SOFTLOOKUP_TESTS_CORE_KERNELS_SKETCHED_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/key_sketch.h"
#include "tests/testing/kept_rows.h"
#include "tests/testing/random.h"

namespace softlookup::kernels {

// Ways to fill keys.
enum class Fill { kNormal, kHuge, kTiny, kMixed, kZeros, kOneLarge, kAlike, kSubnormal };
inline constexpr Fill kFills[] = {Fill::kNormal, Fill::kHuge,     Fill::kTiny,  Fill::kMixed,
                                  Fill::kZeros,  Fill::kOneLarge, Fill::kAlike, Fill::kSubnormal};

inline std::vector<float> Filled(Fill fill, std::int64_t row_count, std::int64_t dim,
                                 std::uint64_t seed) {
  softlookup::testing::Draw draw(seed);
  std::vector<float> keys = draw.Normal(row_count * dim);
  for (std::int64_t r = 0; r < row_count; ++r) {
    float* const key = keys.data() + r * dim;
    const int row_exponent = static_cast<int>(draw.Int(-55, 55));
    for (std::int64_t i = 0; i < dim; ++i) {
      switch (fill) {
        case Fill::kNormal:
          break;
        case Fill::kHuge:  // Up to 2^60.
          key[i] = std::ldexp(std::clamp(key[i], -2.0f, 2.0f), 59);
          break;
        case Fill::kTiny:
          key[i] = std::ldexp(key[i], -59);
          break;
        case Fill::kMixed:  // Row by row, and component by component.
          key[i] = std::ldexp(key[i], row_exponent - static_cast<int>(draw.Int(0, 40)));
          break;
        case Fill::kZeros:
          if (r % 3 != 1) key[i] = 0;
          break;
        case Fill::kOneLarge:
          key[i] *= i == r % dim ? 1000 : 1e-3f;
          break;
        case Fill::kAlike:
          key[i] = (r + i) % 2 == 0 || r % 2 == 0 ? 0.7f : -0.7f;
          break;
        case Fill::kSubnormal:  // Beside an ordinary row.
          if (r != 5) key[i] = std::ldexp(key[i], -100 - static_cast<int>(r % 47));
          break;
      }
    }
  }
  return keys;
}

// A sketch and its memory, which ends right behind it.
class Sketch {
 public:
  explicit Sketch(const softlookup::testing::KeptRows& rows)
      : bytes_(static_cast<std::size_t>(rows.view().full_panel_count *
                                        SketchShape(rows.view().shape.key_dim).bytes())),
        centres_(static_cast<std::size_t>(kBlockBalls * CentreFloats(rows.view().shape.key_dim))),
        view_(MakeSketch(rows.view(), bytes_.data(), centres_.data())) {}

  const SketchView& view() const { return view_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  int code(std::int64_t row, std::int64_t dim) const {
    const auto [slice, lane] = SlotOf(row);
    return static_cast<int>(view_.slice(slice)[dim / 4 * 64 + lane * 4 + dim % 4]) - 128;
  }
  double scale(std::int64_t row) const { return Float(row, view_.scales(SlotOf(row).slice)); }
  double error(std::int64_t row) const { return Float(row, view_.errors(SlotOf(row).slice)); }
  double norm(std::int64_t row) const { return Float(row, view_.norms(SlotOf(row).slice)); }
  SketchView::Slot SlotOf(std::int64_t row) const {
    return view_.SlotsOf(row / kPanelRows).Of(row % kPanelRows);
  }

 private:
  double Float(std::int64_t row, const float* of_slice) const { return of_slice[SlotOf(row).lane]; }

  std::vector<std::byte> bytes_;
  std::vector<float> centres_;
  SketchView view_;
};

inline softlookup::testing::KeptRows RowsOf(Fill fill, std::int64_t row_count, std::int64_t dim,
                                            StorageType storage, std::uint64_t seed) {
  return softlookup::testing::KeptRows({.key_dim = dim, .value_dim = 1, .storage = storage},
                                       row_count, Filled(fill, row_count, dim, seed),
                                       softlookup::testing::NormalFloats(row_count, 1));
}

inline double NormOf(const float* components, std::int64_t dim) {
  return std::sqrt(softlookup::testing::Product(components, components, dim));
}

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_TESTS_CORE_KERNELS_SKETCHED_ROWS_H_
