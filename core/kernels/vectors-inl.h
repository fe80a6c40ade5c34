// The vector types that the kernels share. Include this once per target, after
// hwy/foreach_target.h.
#if defined(SOFTLOOKUP_CORE_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOFTLOOKUP_CORE_KERNELS_VECTORS_INL_H_
#undef SOFTLOOKUP_CORE_KERNELS_VECTORS_INL_H_
#else
#define SOFTLOOKUP_CORE_KERNELS_VECTORS_INL_H_
#endif

#include <cstddef>

#include "core/kernels/panel.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Float32 vectors have at most 16 lanes, as many as a panel has rows. Float64 vectors have half as
// many lanes.
using FloatTag = hn::CappedTag<float, kPanelRows>;
using HalfFloatTag = hn::Half<FloatTag>;
using DoubleTag = hn::Rebind<double, HalfFloatTag>;
using FloatVec = hn::Vec<FloatTag>;
using DoubleVec = hn::Vec<DoubleTag>;
constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
constexpr std::size_t kHalfLanes = hn::MaxLanes(DoubleTag());
constexpr int kVecsPerPanel = static_cast<int>(kPanelRows / kLanes);

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#endif  // SOFTLOOKUP_CORE_KERNELS_VECTORS_INL_H_
