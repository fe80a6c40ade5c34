// Rounds floats to integers, and splits the integers into base-256 digits. Include this once per
// target, after core/kernels/vectors-inl.h.
#if defined(SOFTLOOKUP_CORE_KERNELS_DIGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTLOOKUP_CORE_KERNELS_DIGITS_INL_H_
#undef SOFTLOOKUP_CORE_KERNELS_DIGITS_INL_H_
#else
#define SOFTLOOKUP_CORE_KERNELS_DIGITS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

// Returns the nearest integer, which must fit into four digits in [-128, 127].
HWY_INLINE IntVec Nearest(FloatVec x) {
#if HWY_TARGET <= HWY_AVX3
  return IntVec{_mm512_cvtps_epi32(x.raw)};  // hn::NearestInt would also check for overflow.
#else
  return hn::NearestInt(x);
#endif
}

// Returns the digits of the nearest integer, each plus 128 and in one byte, the lowest digit first.
HWY_INLINE IntVec OffsetDigitsOf(FloatVec x) {
  return hn::Add(Nearest(x), hn::Set(IntTag(), static_cast<std::int32_t>(0x80808080)));
}

// Returns the digits of the nearest integer, in one signed byte each, the lowest digit first.
HWY_INLINE IntVec DigitsOf(FloatVec x) {
  return hn::Xor(OffsetDigitsOf(x), hn::Set(IntTag(), static_cast<std::int32_t>(0x80808080)));
}

HWY_INLINE float MagnitudeOf(const float* HWY_RESTRICT components, std::int64_t count) {
  const FloatTag d;
  FloatVec magnitudes = hn::Zero(d);
  const auto lanes = static_cast<std::int64_t>(kLanes);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    magnitudes = hn::Max(magnitudes, hn::Abs(hn::LoadU(d, components + i)));
  }
  float magnitude = hn::GetLane(hn::MaxOfLanes(d, magnitudes));
  for (; i < count; ++i) magnitude = std::max(magnitude, std::abs(components[i]));
  return magnitude;
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#endif  // SOFTLOOKUP_CORE_KERNELS_DIGITS_INL_H_
