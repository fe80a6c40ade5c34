#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
#define SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// A sketch is a coarse copy of the keys of a block, in about a quarter of float32's bytes. A scan
// of the sketch bounds the score of every row (panel_bounds.h), so that the rows that matter can be
// told from those that do not.
//
// A key k is kept as codes c, one byte a component, and a scale s. Beside them are an upper bound
// on |k - s c| and the norm |k|. A sketch has the same bits on all CPUs with fused multiply-adds.

// The largest code of a key. A code is stored plus 128.
inline constexpr int kKeyCodeMax = 127;
// A sketch has a panel for each of the block's full panels:
//
//   codes   [groups of 4 components][16 rows][4 components]
//   scales  [16 rows]  float32
//   errors  [16 rows]  float32, upper bounds on |k - s c|
//   norms   [16 rows]  float32, |k| rounded to nearest
//
// The last group is filled up with the code of 0.
struct SketchView {
  static constexpr std::int64_t kGroup = 4;  // Components.
  static constexpr std::int64_t kGroupBytes = kGroup * kPanelRows;

  const std::byte* panels = nullptr;
  std::int64_t panel_count = 0;
  std::int64_t key_dim = 0;
  // Over all rows: the largest error, the largest error divided by its norm, the largest norm, and
  // the smallest norm above 0. Rows of norm 0 have no part in the second.
  float error_max = 0;
  float relative_error_max = 0;
  float norm_max = 0;
  float norm_min = 0;

  std::int64_t group_count() const { return (key_dim + kGroup - 1) / kGroup; }
  std::int64_t panel_bytes() const { return group_count() * kGroupBytes + 12 * kPanelRows; }
  const std::byte* panel(std::int64_t index) const { return panels + index * panel_bytes(); }
  const float* scales(std::int64_t index) const {
    return reinterpret_cast<const float*>(panel(index) + group_count() * kGroupBytes);
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

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
