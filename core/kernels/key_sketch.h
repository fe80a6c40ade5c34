#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
#define SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/kernels/key_ball.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// A sketch is a coarse copy of the keys in a block's full panels, in about a quarter of float32's
// bytes. A scan of the sketch gives upper bounds on the scores of these rows (panel_bounds.h). Such
// bounds can show that rows do not matter to a query.
//
// A key k is kept as codes c, one byte a component, and a scale s. Beside them are an upper bound
// on |k - s c| and the norm |k|. A sketch has the same bits on all CPUs with fused multiply-adds.

// The largest |code| of a key. A code is stored plus 128.
inline constexpr int kKeyCodeMax = 127;

// A sketch holds the rows of the block's full panels in slices of 16 rows. 16 panels make a span of
// 16 slices. Each slice of such a span has one row of each panel, and a panel's rows are all in the
// same lane. So a kernel joins its results for a panel's rows without operations across lanes. The
// panels that are left make spans of 8, 4, 2 or 1 panels, with as many slices as panels. In a span
// of n panels, a panel has 16 / n lanes. Lane l of slice s is row (16 s + l) / n of panel
// (16 s + l) % n. Here, slices and panels are counted from the first of the span.
//
// The layout of a slice:
//
//   codes   [groups of 4 components][16 rows][4 components]
//   scales  [16 rows]  float32
//   errors  [16 rows]  float32, upper bounds on |k - s c|
//   norms   [16 rows]  float32, |k| rounded to nearest
//
// The stored code of 0 fills up the last group.
struct SketchView {
  static constexpr std::int64_t kGroup = 4;  // Components.
  static constexpr std::int64_t kGroupBytes = kGroup * kPanelRows;

  // The place of one row in a sketch.
  struct Slot {
    std::int64_t slice = 0;
    std::int64_t lane = 0;
  };

  const std::byte* slices = nullptr;
  std::int64_t panel_count = 0;  // Also the number of slices.
  std::int64_t key_dim = 0;
  // Over all rows of the sketch, as MakeSketch() sets them:
  float error_max = 0;           // The largest bound on an error.
  float relative_error_max = 0;  // The largest error bound / norm of a key of norm above 0.
  float norm_max = 0;            // The largest norm of a key.
  float norm_min = 0;            // The smallest norm above 0; infinity if there is none.
  KeyBalls balls;                // Together they hold all keys. Set if has_balls().

  bool has_balls() const { return balls[0].centre != nullptr; }
  std::int64_t group_count() const { return (key_dim + kGroup - 1) / kGroup; }
  std::int64_t slice_bytes() const { return group_count() * kGroupBytes + 12 * kPanelRows; }
  const std::byte* slice(std::int64_t index) const { return slices + index * slice_bytes(); }
  const float* scales(std::int64_t slice_index) const {
    return reinterpret_cast<const float*>(slice(slice_index) + group_count() * kGroupBytes);
  }
  const float* errors(std::int64_t slice_index) const { return scales(slice_index) + kPanelRows; }
  const float* norms(std::int64_t slice_index) const {
    return scales(slice_index) + 2 * kPanelRows;
  }

  // Returns the number of panels in the span whose first panel is `panel`, which must be in the
  // sketch.
  std::int64_t SpanFrom(std::int64_t panel) const {
    return static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::min(panel_count - panel, kPanelRows))));
  }
  // Returns the index of the first panel of the span that `panel` is in. The first slice of the
  // span has the same index. `panel` must be in the sketch.
  std::int64_t SpanOf(std::int64_t panel) const {
    std::int64_t begin = panel / kPanelRows * kPanelRows;
    while (panel >= begin + SpanFrom(begin)) begin += SpanFrom(begin);
    return begin;
  }
  // Says where in the sketch the rows of one panel are.
  struct PanelSlots {
    std::int64_t span_begin = 0, span = 0, panel = 0;

    // Returns the place of row `row` of the panel, from 0.
    Slot Of(std::int64_t row) const {
      const std::int64_t slot = row * span + (panel - span_begin);
      return {.slice = span_begin + slot / kPanelRows, .lane = slot % kPanelRows};
    }
  };
  PanelSlots SlotsOf(std::int64_t panel) const {
    const std::int64_t begin = SpanOf(panel);
    return {.span_begin = begin, .span = SpanFrom(begin), .panel = panel};
  }
  float norm(Slot slot) const { return norms(slot.slice)[slot.lane]; }
  // Writes the norms of a panel's 16 rows to `norms`.
  void CopyNorms(std::int64_t panel, float* norms) const {
    const PanelSlots slots = SlotsOf(panel);
    for (std::int64_t row = 0; row < kPanelRows; ++row) norms[row] = norm(slots.Of(row));
  }
};

// Returns a shape whose panels have as many bytes as a sketch's slices, so that a sketch can be
// allocated as panels.
constexpr PanelShape SketchShape(std::int64_t key_dim) {
  return {.key_dim = (key_dim + 3) / 4 * 4 + 4, .storage = StorageType::kInt8};
}

// Returns true if MakeSketch takes a block whose keys have this bound on |component|.
bool KeysFitSketch(float key_magnitude);

// Writes the sketch of the full panels of `block` to `slices`, which must have
// block.full_panel_count * SketchShape(key_dim).bytes() bytes, aligned to 4 bytes. KeysFitSketch
// must hold for the block's keys. Writes the centres of the keys' balls to `centres`, as
// MakeKeyBalls does. If `centres` is null, the sketch has no balls. The returned view points to
// `slices` and `centres`.
SketchView MakeSketch(const BlockView& block, std::byte* slices, float* centres);

// Divides the scales and errors of a sketch's rows by the rows' norms. Writes the results to
// scales[slice * kPanelRows + lane] and to the same index of `errors`. A row whose norm is below
// `norm_min` gets a scale of 0, and an error of 1, or of 0 if its norm is 0. `norm_min` must be
// above 0.
void DivideByNorms(const SketchView& sketch, float norm_min, float* scales, float* errors);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_H_
