#ifndef SOFTLOOKUP_TESTS_TESTING_KEPT_ROWS_H_
#define SOFTLOOKUP_TESTS_TESTING_KEPT_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "tests/testing/random.h"

namespace softlookup::testing {

// A block of rows in panels, and the rows as they are kept, which is what counts for a test. Memory
// ends right behind the last panel, so that asan sees every overrun.
class KeptRows {
 public:
  KeptRows(kernels::PanelShape shape, std::int64_t row_count, std::vector<float> keys,
           std::vector<float> values)
      : keys_(std::move(keys)),
        values_(std::move(values)),
        panels_((row_count + kernels::kPanelRows - 1) / kernels::kPanelRows * shape.bytes()) {
    view_.shape = shape;
    view_.full_panels = panels_.data();
    view_.full_panel_count = row_count / kernels::kPanelRows;
    view_.partial_panel = panels_.data() + view_.full_panel_count * shape.bytes();
    view_.row_count = row_count;
    kernels::PanelRowReader reader(shape);
    for (std::int64_t row = 0; row < row_count; ++row) {
      std::byte* panel = panels_.data() + row / kernels::kPanelRows * shape.bytes();
      float* const key = keys_.data() + row * shape.key_dim;
      float* const value = values_.data() + row * shape.value_dim;
      kernels::PutRow(shape, key, value, row % kernels::kPanelRows, panel);
      const kernels::PanelRow kept = reader.Read(panel, row % kernels::kPanelRows);
      for (std::int64_t i = 0; i < shape.key_dim; ++i) {
        key[i] = kept.key[i * kept.key_stride];
        view_.key_magnitude = std::max(view_.key_magnitude, std::abs(key[i]));
      }
      for (std::int64_t i = 0; i < shape.value_dim; ++i) {
        value[i] = kept.value[i];
        view_.value_magnitude = std::max(view_.value_magnitude, std::abs(value[i]));
      }
    }
  }

  // Of normally distributed components.
  KeptRows(kernels::PanelShape shape, std::int64_t row_count, std::uint64_t seed,
           double deviation = 1)
      : KeptRows(shape, row_count, NormalFloats(row_count * shape.key_dim, seed, deviation),
                 NormalFloats(row_count * shape.value_dim, seed + 1, deviation)) {}

  // Has the magnitudes; nothing else that bounds rows.
  const kernels::BlockView& view() const { return view_; }
  kernels::PanelRange panels() const { return {.begin = 0, .end = view_.panel_count()}; }
  const float* key(std::int64_t row) const { return keys_.data() + row * view_.shape.key_dim; }
  const float* value(std::int64_t row) const {
    return values_.data() + row * view_.shape.value_dim;
  }
  kernels::DimRange key_dims() const { return {.begin = 0, .count = view_.shape.key_dim}; }
  kernels::DimRange value_dims() const { return {.begin = 0, .count = view_.shape.value_dim}; }

 private:
  std::vector<float> keys_;
  std::vector<float> values_;
  std::vector<std::byte> panels_;
  kernels::BlockView view_;
};

// To each `dim` of `components`.
inline std::vector<const float*> PointersTo(const std::vector<float>& components,
                                            std::int64_t dim) {
  std::vector<const float*> pointers;
  for (std::size_t i = 0; i < components.size(); i += dim) pointers.push_back(&components[i]);
  return pointers;
}

// The largest |component|.
inline float MagnitudeOf(const float* components, std::int64_t count) {
  float magnitude = 0;
  for (std::int64_t i = 0; i < count; ++i) magnitude = std::max(magnitude, std::abs(components[i]));
  return magnitude;
}

// The sum of products, in float64.
inline double Product(const float* query, const float* key, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += static_cast<double>(query[i]) * key[i];
  return sum;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_KEPT_ROWS_H_
