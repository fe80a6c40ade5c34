#ifndef SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
#define SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace softlookup::kernels {

// Keys and queries as integers of four base-256 digits, each in [-128, 127], times a unit. The
// integers reach up to 2^31 / kFixedPointMargin.

// Let e be the float32 exponent field of kFixedPointMargin times a magnitude, but at least
// kFixedPointExponentMin. The bound on numbers of this magnitude is 2^(e - 126), and so at least
// 2^-90.
inline constexpr float kFixedPointMargin = 1.004f;
inline constexpr std::int32_t kFixedPointExponentMin = 126 - 90;

// Returns a power of two that bounds a key or query of this magnitude, which is its largest
// |component|. The bound is below 2.01 times the magnitude, but at least 2^-90. Components are
// rounded to the nearest multiple of 2^-31 of the bound.
inline double FixedPointBound(float magnitude) {
  const std::int32_t exponent = std::max(
      std::bit_cast<std::int32_t>(magnitude * kFixedPointMargin) >> 23, kFixedPointExponentMin);
  return std::bit_cast<double>(static_cast<std::int64_t>(exponent - 126 + 1023) << 52);
}

// Returns true if `magnitude` is 0 or in [2^-50, 2^50]. The integers and units of such magnitudes,
// and their products with each other, are far from the ends of float32's range.
inline bool IsModerate(float magnitude) {
  return magnitude == 0 || (magnitude >= 0x1p-50f && magnitude <= 0x1p50f);
}

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
