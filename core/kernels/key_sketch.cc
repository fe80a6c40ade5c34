#include "core/kernels/key_sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/kernels/score_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/key_sketch.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/decode-inl.h"
#include "core/kernels/vectors-inl.h"
// clang-format on

#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_CC_  // For all targets.
#define SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_CC_
namespace softlookup::kernels {

// Decoded keys are sketched for this many components at a time.
inline constexpr std::int64_t kSketchDims = 256;

}  // namespace softlookup::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

using CodeTag = hn::RebindToSigned<FloatTag>;
using CodeVec = hn::Vec<CodeTag>;

// Writes the codes of one panel to `codes`. Writes the scales, and the sums over components of
// (k - s c)^2.
void SketchPanelOneTarget(const BlockView& block, std::int64_t panel, std::byte* codes,
                          float* HWY_RESTRICT scales, float* HWY_RESTRICT error_squares) {
  const FloatTag d;
  alignas(64) float decoded[kSketchDims * kPanelRows];
  const std::int64_t dim_count = block.shape.key_dim;
  const auto keys_from = [&](std::int64_t dim) {
    return DecodedKeys(block.shape, block.panel(panel),
                       {.begin = dim, .count = std::min(kSketchDims, dim_count - dim)}, decoded);
  };
  alignas(64) float magnitudes[kPanelRows] = {};
  for (std::int64_t begin = 0; begin < dim_count; begin += kSketchDims) {
    const float* keys = keys_from(begin);
    const std::int64_t count = std::min(kSketchDims, dim_count - begin);
    for (std::size_t lane = 0; lane < kPanelRows; lane += kLanes) {
      FloatVec magnitude = hn::Load(d, magnitudes + lane);
      for (std::int64_t i = 0; i < count; ++i) {
        magnitude = hn::Max(magnitude, hn::Abs(hn::LoadU(d, keys + i * kPanelRows + lane)));
      }
      hn::Store(magnitude, d, magnitudes + lane);
    }
  }
  alignas(64) float inverses[kPanelRows];
  for (std::int64_t row = 0; row < kPanelRows; ++row) {
    scales[row] = magnitudes[row] * (1.0f / kKeyCodeMax);
    // A key whose scale would be subnormal has codes of 0. Its error is its norm.
    if (scales[row] < 0x1p-120f) scales[row] = 0;
    inverses[row] = scales[row] > 0 ? 1 / scales[row] : 0;
    error_squares[row] = 0;
  }
  const FloatVec code_max = hn::Set(d, static_cast<float>(kKeyCodeMax));
  alignas(64) std::int32_t lane_codes[kPanelRows];
  auto* bytes = reinterpret_cast<std::uint8_t*>(codes);
  std::memset(bytes, 128, static_cast<std::size_t>((dim_count + 3) / 4 * SketchView::kGroupBytes));
  for (std::int64_t begin = 0; begin < dim_count; begin += kSketchDims) {
    const float* keys = keys_from(begin);
    const std::int64_t count = std::min(kSketchDims, dim_count - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t lane = 0; lane < kPanelRows; lane += kLanes) {
        const FloatVec key = hn::LoadU(d, keys + i * kPanelRows + lane);
        const FloatVec exact = hn::Mul(key, hn::LoadU(d, inverses + lane));
        const FloatVec code = hn::Round(hn::Max(hn::Neg(code_max), hn::Min(exact, code_max)));
        const FloatVec rest = hn::NegMulAdd(code, hn::LoadU(d, scales + lane), key);
        hn::StoreU(hn::MulAdd(rest, rest, hn::LoadU(d, error_squares + lane)), d,
                   error_squares + lane);
        hn::Store(hn::ConvertTo(CodeTag(), code), CodeTag(), lane_codes + lane);
      }
      const std::int64_t dim = begin + i;
      std::uint8_t* group =
          bytes + dim / SketchView::kGroup * SketchView::kGroupBytes + dim % SketchView::kGroup;
      for (std::int64_t row = 0; row < kPanelRows; ++row) {
        group[row * SketchView::kGroup] = static_cast<std::uint8_t>(lane_codes[row] + 128);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {
namespace {

HWY_EXPORT(SketchPanelOneTarget);

// Codes, and sums of squares in float32, are off by less than this part of themselves.
constexpr float kRoundedUp = 1 + 0x1p-9f;

}  // namespace

bool KeysFitSketch(float key_magnitude) {
  return key_magnitude >= 0x1p-60f && key_magnitude <= 0x1p60f;
}

SketchView MakeSketch(const BlockView& block, std::byte* panels) {
  SketchView view{
      .panels = panels, .panel_count = block.full_panel_count, .key_dim = block.shape.key_dim};
  std::array<double, kBlockRowsMax> norms;
  KeyNorms(block, {.begin = 0, .end = view.panel_count}, {.begin = 0, .count = view.key_dim},
           norms.data());
  view.norm_min = std::numeric_limits<float>::infinity();
  const float lost = 0x1p-62f * std::sqrt(static_cast<float>(view.key_dim));
  for (std::int64_t panel = 0; panel < view.panel_count; ++panel) {
    std::byte* const to = panels + panel * view.panel_bytes();
    auto* scales = reinterpret_cast<float*>(to + view.group_count() * SketchView::kGroupBytes);
    float* errors = scales + kPanelRows;
    float* kept_norms = errors + kPanelRows;
    HWY_DYNAMIC_DISPATCH(SketchPanelOneTarget)(block, panel, to, scales, errors);
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      const auto norm = static_cast<float>(norms[panel * kPanelRows + row]);
      kept_norms[row] = norm;
      // The rest of a component was formed with an error of at most 2^-23 of the component. The
      // square of a rest below 2^-63 may have been lost.
      errors[row] = std::sqrt(errors[row]) * kRoundedUp + norm * 0x1p-20f + lost;
      view.error_max = std::max(view.error_max, errors[row]);
      view.norm_max = std::max(view.norm_max, norm);
      if (norm == 0) continue;
      view.norm_min = std::min(view.norm_min, norm);
      view.relative_error_max = std::max(view.relative_error_max, errors[row] / norm);
    }
  }
  return view;
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
