#ifndef SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_
#define SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// These functions read and write single rows of panels, for all code except the scans. `lane` is
// the index of a row in its panel, in [0, kPanelRows).

// A stored row in float32. Component i of its key is key[i * key_stride].
struct PanelRow {
  const float* key = nullptr;
  std::int64_t key_stride = 1;
  const float* value = nullptr;
};

// Reads rows of panels of one shape. Not thread-safe.
class PanelRowReader {
 public:
  explicit PanelRowReader(const PanelShape& shape);

  // Returns the row `lane` of `panel`. Its pointers are valid until the next Read() of this reader,
  // and only while the panel exists.
  PanelRow Read(const std::byte* panel, std::int64_t lane);
  // `row` counts from the block's first row.
  PanelRow Read(const BlockView& block, std::int64_t row) {
    return Read(block.panel(row / kPanelRows), row % kPanelRows);
  }

 private:
  const PanelShape shape_;
  std::vector<float> key_, value_;  // Empty for FLOAT32, whose rows are read in place.
};

// Returns the components `dims` of a row's value: in place for FLOAT32, else in `buffer`, which has
// room for dims.count floats.
const float* ReadValue(const PanelShape& shape, const std::byte* panel, std::int64_t lane,
                       DimRange dims, float* buffer);

// Writes a row of finite components to row `lane` of `panel`, rounded to the storage type.
void PutRow(const PanelShape& shape, const float* key, const float* value, std::int64_t lane,
            std::byte* panel);

// PackRow() copies row `lane` of `panel` to `row`, and UnpackRow() copies it back. `row` has
// shape.row_bytes() bytes: key, value, and for INT8 the scales of the key and of the value. The
// elements are copied as they are stored.
void PackRow(const PanelShape& shape, const std::byte* panel, std::int64_t lane, std::byte* row);
void UnpackRow(const PanelShape& shape, const std::byte* row, std::int64_t lane, std::byte* panel);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PANEL_ROWS_H_
