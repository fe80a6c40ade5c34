#ifndef SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
#define SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace softlookup::kernels {

// A key or query is kept as integers times a unit. The unit is 2^-31 times the vector's
// FixedPointBound(). An integer has four base-256 digits, each in [-128, 127]. Four such digits
// hold no more than 0x7f7f7f7f, so the bound keeps the |integers| below 2^31 / kFixedPointMargin.

// FixedPointBound(magnitude) is 2^(e - 126). Here e is the exponent field of the float32
// kFixedPointMargin * magnitude, but at least kFixedPointExponentMin. So the bound is at least
// 2^-90.
inline constexpr float kFixedPointMargin = 1.004f;
inline constexpr std::int32_t kFixedPointExponentMin = 126 - 90;

// Returns a power of two that is above all |components| of a key or query. `magnitude` is the
// largest |component|. The power is 2^-90, or larger and below 2.01 times the magnitude. The unit
// of the components' integers is 2^-31 times this power.
inline double FixedPointBound(float magnitude) {
  const std::int32_t exponent = std::max(
      std::bit_cast<std::int32_t>(magnitude * kFixedPointMargin) >> 23, kFixedPointExponentMin);
  return std::bit_cast<double>(static_cast<std::int64_t>(exponent - 126 + 1023) << 52);
}

// Returns true if `magnitude`, the largest |component| of keys, queries or values, is 0 or in
// [2^-50, 2^50]. Such a magnitude, its unit and the product of two such magnitudes are 0 or far
// from the ends of float32's range.
inline bool IsModerate(float magnitude) {
  return magnitude == 0 || (magnitude >= 0x1p-50f && magnitude <= 0x1p50f);
}

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
