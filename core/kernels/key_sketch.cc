#include "core/kernels/key_sketch.h"

#include <algorithm>
#include <array>
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

#ifndef SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_CC_  // Once for all targets.
#define SOFTLOOKUP_CORE_KERNELS_KEY_SKETCH_CC_
namespace softlookup::kernels {

// The keys of a panel are decoded and sketched for this many components at a time.
inline constexpr std::int64_t kSketchDims = 256;

}  // namespace softlookup::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

using CodeTag = hn::RebindToSigned<FloatTag>;
using CodeVec = hn::Vec<CodeTag>;

// Writes the codes of the rows of one panel. codes[row] points to the row's first code in its
// slice. Also writes the rows' scales. Sets error_squares[row] to the sum over components of
// (k - s c)^2.
void SketchPanelOneTarget(const BlockView& block, std::int64_t panel,
                          std::uint8_t* const* HWY_RESTRICT codes, float* HWY_RESTRICT scales,
                          float* HWY_RESTRICT error_squares) {
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
    // A scale below 2^-120 becomes 0, so that its inverse does not overflow. Such a key has codes
    // of 0, and its error is its norm.
    if (scales[row] < 0x1p-120f) scales[row] = 0;
    inverses[row] = scales[row] > 0 ? 1 / scales[row] : 0;
    error_squares[row] = 0;
  }
  const FloatVec code_max = hn::Set(d, static_cast<float>(kKeyCodeMax));
  alignas(64) std::int32_t lane_codes[kPanelRows];
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
      const std::int64_t offset =
          dim / SketchView::kGroup * SketchView::kGroupBytes + dim % SketchView::kGroup;
      for (std::int64_t row = 0; row < kPanelRows; ++row) {
        codes[row][offset] = static_cast<std::uint8_t>(lane_codes[row] + 128);
      }
    }
  }
}

void DivideByNormsOneTarget(const SketchView& sketch, float norm_min, float* HWY_RESTRICT scales,
                            float* HWY_RESTRICT errors) {
  const FloatTag d;
  const FloatVec one = hn::Set(d, 1.0f);
  for (std::int64_t slice = 0; slice < sketch.panel_count; ++slice) {
    for (std::size_t lane = 0; lane < kPanelRows; lane += kLanes) {
      const FloatVec norm = hn::LoadU(d, sketch.norms(slice) + lane);
      const auto is_tiny = hn::Lt(norm, hn::Set(d, norm_min));
      const FloatVec inverse = hn::IfThenZeroElse(is_tiny, hn::Div(one, norm));
      const FloatVec tiny_error = hn::IfThenElseZero(hn::Gt(norm, hn::Zero(d)), one);
      const FloatVec error = hn::Mul(hn::LoadU(d, sketch.errors(slice) + lane), inverse);
      const std::size_t at = static_cast<std::size_t>(slice * kPanelRows) + lane;
      hn::StoreU(hn::Mul(hn::LoadU(d, sketch.scales(slice) + lane), inverse), d, scales + at);
      hn::StoreU(hn::IfThenElse(is_tiny, tiny_error, error), d, errors + at);
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
HWY_EXPORT(DivideByNormsOneTarget);

// The exact root of a sum of up to kDimMax squares is below kRoundedUp times the root of its
// float32 sum.
constexpr float kRoundedUp = 1 + 0x1p-9f;

}  // namespace

bool KeysFitSketch(float key_magnitude) {
  return key_magnitude >= 0x1p-60f && key_magnitude <= 0x1p60f;
}

SketchView MakeSketch(const BlockView& block, std::byte* slices, float* centres) {
  SketchView view{
      .slices = slices, .panel_count = block.full_panel_count, .key_dim = block.shape.key_dim};
  std::array<double, kBlockRowsMax> norms;
  KeyNorms(block, {.begin = 0, .end = view.panel_count}, {.begin = 0, .count = view.key_dim},
           norms.data());
  view.norm_min = std::numeric_limits<float>::infinity();
  std::memset(slices, 128, static_cast<std::size_t>(view.panel_count * view.slice_bytes()));
  const float lost = 0x1p-62f * std::sqrt(static_cast<float>(view.key_dim));
  for (std::int64_t panel = 0; panel < view.panel_count; ++panel) {
    const SketchView::PanelSlots slots = view.SlotsOf(panel);
    std::array<std::uint8_t*, kPanelRows> codes;
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      const auto [slice, lane] = slots.Of(row);
      codes[row] = reinterpret_cast<std::uint8_t*>(slices + slice * view.slice_bytes() +
                                                   lane * SketchView::kGroup);
    }
    std::array<float, kPanelRows> scales, errors;
    HWY_DYNAMIC_DISPATCH(SketchPanelOneTarget)
    (block, panel, codes.data(), scales.data(), errors.data());
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      const auto norm = static_cast<float>(norms[panel * kPanelRows + row]);
      // norm * 2^-20 covers the roundings of k - s c, each at most 2^-23 of a component of k.
      // `lost` covers components of k - s c below 2^-63, whose squares may have underflowed.
      errors[row] = std::sqrt(errors[row]) * kRoundedUp + norm * 0x1p-20f + lost;
      // A lane has as many bytes in an array of floats as in a group of codes. So the row's scale
      // is behind its first code by exactly the bytes of all groups.
      static_assert(sizeof(float) == SketchView::kGroup);
      auto* terms =
          reinterpret_cast<float*>(codes[row] + view.group_count() * SketchView::kGroupBytes);
      terms[0] = scales[row];
      terms[kPanelRows] = errors[row];
      terms[2 * kPanelRows] = norm;
      view.error_max = std::max(view.error_max, errors[row]);
      view.norm_max = std::max(view.norm_max, norm);
      if (norm == 0) continue;
      view.norm_min = std::min(view.norm_min, norm);
      view.relative_error_max = std::max(view.relative_error_max, errors[row] / norm);
    }
  }
  if (centres != nullptr) view.balls = MakeKeyBalls(block, centres);
  return view;
}

void DivideByNorms(const SketchView& sketch, float norm_min, float* scales, float* errors) {
  HWY_DYNAMIC_DISPATCH(DivideByNormsOneTarget)(sketch, norm_min, scales, errors);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
