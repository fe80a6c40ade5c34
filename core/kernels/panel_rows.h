#ifndef SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_
#define SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Single rows of panels, as all but the scans reads and writes them. `lane` is a row's place in its
// panel, in [0, kPanelRows).

// A row as it is kept. Its key's component i is at key[i * key_stride].
struct PanelRow {
  const float* key = nullptr;
  std::int64_t key_stride = 1;
  const float* value = nullptr;
};

// Reads rows of panels of one shape. Not thread-safe.
class PanelRowReader {
 public:
  explicit PanelRowReader(const PanelShape& shape);

  // Valid as long as the panel, and until the next call.
  PanelRow Read(const std::byte* panel, std::int64_t lane);
  PanelRow Read(const BlockView& block, std::int64_t row) {
    return Read(block.panel(row / kPanelRows), row % kPanelRows);
  }

 private:
  const PanelShape shape_;
  std::vector<float> key_, value_;  // Empty for FLOAT32, whose rows are read in place.
};

// The components `dims` of a row's value: in place, or in `buffer`, of dims.count.
const float* ReadValue(const PanelShape& shape, const std::byte* panel, std::int64_t lane,
                       DimRange dims, float* buffer);

// Keeps a row of finite components, rounded as the storage type has it.
void PutRow(const PanelShape& shape, const float* key, const float* value, std::int64_t lane,
            std::byte* panel);

// The same for a row's shape.row_bytes() by themselves: key, value, and the scales if there are
// any.
void PackRow(const PanelShape& shape, const std::byte* panel, std::int64_t lane, std::byte* row);
void UnpackRow(const PanelShape& shape, const std::byte* row, std::int64_t lane, std::byte* panel);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_
