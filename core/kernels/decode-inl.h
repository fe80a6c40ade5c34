// Decodes components of panels to float32 vectors. Include this once per target, after
// core/kernels/vectors-inl.h.
#if defined(SOFTLOOKUP_CORE_KERNELS_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTLOOKUP_CORE_KERNELS_DECODE_INL_H_
#undef SOFTLOOKUP_CORE_KERNELS_DECODE_INL_H_
#else
#define SOFTLOOKUP_CORE_KERNELS_DECODE_INL_H_
#endif

#include "core/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Loads a vector of components from `elements` on. For INT8, these are the integers, not yet
// multiplied by the scale.
template <StorageType kStorage>
HWY_INLINE FloatVec Decode(const std::byte* elements) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> d32;
  if constexpr (kStorage == StorageType::kFloat32) {
    return hn::LoadU(d, reinterpret_cast<const float*>(elements));
  } else if constexpr (kStorage == StorageType::kBfloat16) {
    const hn::Rebind<std::uint16_t, FloatTag> d16;
    const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(elements));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
  } else {
    const hn::Rebind<std::int8_t, FloatTag> d8;
    const auto numbers = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(elements));
    return hn::ConvertTo(d, hn::PromoteTo(d32, numbers));
  }
}

// Does the same as Decode, and multiplies INT8 integers by `scale`. Other storage types ignore
// `scale`.
template <StorageType kStorage>
HWY_INLINE FloatVec DecodeScaled(const std::byte* elements, FloatVec scale) {
  const FloatVec decoded = Decode<kStorage>(elements);
  return kStorage == StorageType::kInt8 ? hn::Mul(decoded, scale) : decoded;
}

constexpr std::int64_t ElementBytes(StorageType storage) {
  return PanelShape{.storage = storage}.element_bytes();
}

// Decodes dim_count components of a panel's keys to `buffer`, [dim_count][kPanelRows]. `keys`
// points to the first of these components. Reads `scales` for INT8 only.
template <StorageType kStorage>
HWY_INLINE void DecodeKeys(const std::byte* keys, const float* scales, std::int64_t dim_count,
                           float* HWY_RESTRICT buffer) {
  const FloatTag d;
  constexpr std::int64_t kBytes = ElementBytes(kStorage);
  for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes) {
    const FloatVec scale =
        kStorage == StorageType::kInt8 ? hn::LoadU(d, scales + lane) : hn::Zero(d);
    for (std::int64_t i = lane; i < dim_count * kPanelRows; i += kPanelRows) {
      hn::Store(DecodeScaled<kStorage>(keys + i * kBytes, scale), d, buffer + i);
    }
  }
}

// Returns the scales of a panel's INT8 keys. Returns null for other storage types, which have no
// scales.
HWY_INLINE const float* KeyScalesOf(const PanelShape& shape, const std::byte* panel) {
  if (shape.storage != StorageType::kInt8) return nullptr;
  return reinterpret_cast<const float*>(panel + shape.key_scale_offset(0));
}

// Returns the components `dims` of a panel's keys, [dims.count][kPanelRows]: in place for FLOAT32,
// else in `buffer`, which must be aligned to vectors.
HWY_INLINE const float* DecodedKeys(const PanelShape& shape, const std::byte* panel, DimRange dims,
                                    float* HWY_RESTRICT buffer) {
  const std::byte* keys = panel + shape.key_offset(0, dims.begin);
  switch (shape.storage) {
    case StorageType::kFloat32:
      return reinterpret_cast<const float*>(keys);
    case StorageType::kBfloat16:
      DecodeKeys<StorageType::kBfloat16>(keys, nullptr, dims.count, buffer);
      break;
    case StorageType::kInt8:
      DecodeKeys<StorageType::kInt8>(keys, KeyScalesOf(shape, panel), dims.count, buffer);
      break;
  }
  return buffer;
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#endif  // SOFTLOOKUP_CORE_KERNELS_DECODE_INL_H_
