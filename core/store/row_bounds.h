#ifndef SOFTLOOKUP_CORE_STORE_ROW_BOUNDS_H_
#define SOFTLOOKUP_CORE_STORE_ROW_BOUNDS_H_

#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"
#include "core/kernels/panel_rows.h"
#include "softlookup/store_config.h"

namespace softlookup {

// The largest components and norms of some rows, for kernels::BlockView.
struct RowBounds {
  float key_magnitude = 0;    // Largest |component| of the keys.
  float value_magnitude = 0;  // Largest |component| of the values.
  // Largest norm of the keys in each head, rounded to the nearest float32. Empty before the first
  // row.
  std::vector<float> key_norms_max;

  void Add(const kernels::PanelRow& row, const StoreConfig& config);
  // Sets the bounds of `view`, which then points to key_norms_max.
  void SetIn(kernels::BlockView& view) const;
  // Returns the bytes of this object and of what it has allocated.
  std::int64_t bytes() const;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_ROW_BOUNDS_H_
