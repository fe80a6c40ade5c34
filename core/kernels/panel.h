#ifndef SOFTLOOKUP_CORE_KERNELS_PANEL_H_
#define SOFTLOOKUP_CORE_KERNELS_PANEL_H_

#include <cstddef>
#include <cstdint>

#include "core/base/storage_type.h"

namespace softlookup::kernels {

// Rows are kept in panels of 16, in the layout that the kernels read:
//
//   values        [16 rows][value_dim]   row after row
//   keys          [key_dim][16 rows]     transposed: one vector load gives one component of 16 keys
//   key scales    [16 rows]              float32, INT8 only: a component is its integer times this
//   value scales  [16 rows]              the same for values
//
// The parts follow each other without gaps. Components are elements of the storage type.
//
// Each key has a vector lane of its own. So one key's float products are added in a fixed order.
// The vector width, the number of queries and the other rows do not change the order. Integer
// products have exact sums in any order. To sum values, a vector takes neighbouring components of
// one row.
//
// A load at the end of a row's value may read into the next row's value or into the keys. A load at
// the end of INT8 keys may read into the scales. What is read there changes no score and no
// component of a value. No load leaves the panel.
//
// The bytes of rows that are not filled yet are zero.
inline constexpr std::int64_t kPanelRows = 16;

// An INT8 component is its scale times an integer of at most this size.
inline constexpr float kInt8Max = 127;

struct PanelShape {
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  StorageType storage = StorageType::kFloat32;

  constexpr std::int64_t element_bytes() const {
    return storage == StorageType::kFloat32 ? 4 : storage == StorageType::kBfloat16 ? 2 : 1;
  }
  std::int64_t row_bytes() const {
    const std::int64_t scales = storage == StorageType::kInt8 ? 2 : 0;
    return (key_dim + value_dim) * element_bytes() + scales * 4;
  }
  // All offsets below are in bytes from the start of a panel. `row` counts from the panel's first
  // row.
  std::int64_t bytes() const { return kPanelRows * row_bytes(); }
  std::int64_t value_offset(std::int64_t row) const { return row * value_dim * element_bytes(); }
  std::int64_t key_offset(std::int64_t row, std::int64_t dim) const {
    return (kPanelRows * (value_dim + dim) + row) * element_bytes();
  }
  std::int64_t key_scale_offset(std::int64_t row) const {
    return kPanelRows * (value_dim + key_dim) + row * 4;
  }
  std::int64_t value_scale_offset(std::int64_t row) const {
    return key_scale_offset(kPanelRows + row);
  }
};

// A view of a block of up to kBlockRowsMax rows: `full_panel_count` contiguous panels, then at most
// one partial panel, which may lie elsewhere. Panels are aligned to 4 bytes. The view does not own
// them.
struct BlockView {
  PanelShape shape;
  const std::byte* full_panels = nullptr;
  std::int64_t full_panel_count = 0;
  const std::byte* partial_panel = nullptr;  // Set if row_count is not a multiple of kPanelRows.
  std::int64_t row_count = 0;
  // Upper bounds on |component| of the keys and of the values, and for each head the largest norm
  // of that head of a key. The norms are rounded to the nearest float32. All of these may be taken
  // over more rows than this block's, so they may be larger than needed.
  float key_magnitude = 0;
  float value_magnitude = 0;
  const float* key_norms_max = nullptr;  // One per head.

  std::int64_t panel_count() const { return (row_count + kPanelRows - 1) / kPanelRows; }
  const std::byte* panel(std::int64_t index) const {
    return index < full_panel_count ? full_panels + index * shape.bytes() : partial_panel;
  }
};

// The most rows in a block; scratch space is sized for it.
inline constexpr std::int64_t kBlockRowsMax = 1024;

// Elements from one query's part of a scratch array to the next query's. Not a power of two, so
// that the elements of one row for several queries fall into different cache sets.
inline constexpr std::size_t kScratchStride = kBlockRowsMax + kPanelRows;

// The most queries in a tile. The queries of a tile are scanned together over a block.
inline constexpr int kTileQueries = 16;

// The panels [begin, end) of one block, counted from its first panel.
struct PanelRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The rows [begin, end) of one block, counted from its first row.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Returns the panels that hold some of `rows`.
constexpr PanelRange PanelsOf(RowRange rows) {
  return {.begin = rows.begin / kPanelRows, .end = (rows.end + kPanelRows - 1) / kPanelRows};
}

// The components [begin, begin + count): one head of a key or of a value.
struct DimRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_PANEL_H_
