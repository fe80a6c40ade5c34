#include "core/store/row_bounds.h"

#include <algorithm>
#include <cmath>

#include "core/memory/heap_bytes.h"

namespace softlookup {

void RowBounds::Add(const kernels::PanelRow& row, const StoreConfig& config) {
  const auto raise = [](float& bound, float by) { bound = std::max(bound, by); };
  for (std::int64_t i = 0; i < config.value_dim; ++i)
    raise(value_magnitude, std::abs(row.value[i]));
  key_norms_max.resize(config.num_heads);
  const std::int64_t head_dim = config.key_dim / config.num_heads;
  for (std::int64_t head = 0; head < config.num_heads; ++head) {
    double square = 0;
    for (std::int64_t i = head * head_dim; i < (head + 1) * head_dim; ++i) {
      const float component = row.key[i * row.key_stride];
      raise(key_magnitude, std::abs(component));
      square += static_cast<double>(component) * component;
    }
    // If the norm is beyond float32's range, the bound is infinity.
    raise(key_norms_max[head], static_cast<float>(std::sqrt(square)));
  }
}

void RowBounds::SetIn(kernels::BlockView& view) const {
  view.key_magnitude = key_magnitude;
  view.value_magnitude = value_magnitude;
  view.key_norms_max = key_norms_max.data();
}

std::int64_t RowBounds::bytes() const {
  return SharedBytes<RowBounds>() + HeapBytes(key_norms_max);
}

}  // namespace softlookup
