#include "core/kernels/bound_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/bound_search.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

std::uint64_t BoundsFromOneTarget(const float* HWY_RESTRICT bounds, std::size_t count, float cut) {
  const FloatTag d;
  const FloatVec from = hn::Set(d, cut);
  std::uint64_t found = 0;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    // StoreMaskBits may write up to 8 bytes.
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, bounds + i), from), bits);
    found |= (static_cast<std::uint64_t>(bits[1]) << 8 | bits[0]) << i;
  }
  for (; i < count; ++i) found |= static_cast<std::uint64_t>(bounds[i] >= cut ? 1 : 0) << i;
  return found;
}

std::int64_t CountBoundsFromOneTarget(const float* HWY_RESTRICT bounds, std::size_t count,
                                      float cut) {
  const FloatTag d;
  const FloatVec from = hn::Set(d, cut);
  std::size_t found = 0;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    found += hn::CountTrue(d, hn::Ge(hn::LoadU(d, bounds + i), from));
  }
  for (; i < count; ++i) found += bounds[i] >= cut ? 1 : 0;
  return static_cast<std::int64_t>(found);
}

void FindGroupsFromOneTarget(absl::Span<const float> bounds, std::int64_t group_size, float cut,
                             std::vector<std::int32_t>& found) {
  const FloatTag d;
  const FloatVec from = hn::Set(d, cut);
  const auto size = static_cast<std::size_t>(group_size);
  std::int32_t group = 0;
  for (std::size_t begin = 0; begin < bounds.size(); begin += size, ++group) {
    const float* HWY_RESTRICT of_group = bounds.data() + begin;
    bool any = false;
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      any |= !hn::AllFalse(d, hn::Ge(hn::LoadU(d, of_group + i), from));
    }
    for (; i < size; ++i) any |= of_group[i] >= cut;
    if (any) found.push_back(group);
  }
}

std::int64_t SumOfBoundsBelowOneTarget(const float* HWY_RESTRICT bounds, std::size_t count,
                                       float below, float inverse_unit) {
  // The terms of a chunk are summed in 32 bits, which hold 1,024 terms of at most 2^20 each.
  constexpr std::size_t kChunk = 1024;
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec limit = hn::Set(d, below), factor = hn::Set(d, inverse_unit);
  std::int64_t sum = 0;
  std::size_t i = 0;
  while (i + kLanes <= count) {
    const std::size_t end = std::min(count, i + kChunk);
    auto chunk = hn::Zero(di);
    for (; i + kLanes <= end; i += kLanes) {
      const FloatVec bound = hn::LoadU(d, bounds + i);
      const FloatVec term = hn::IfThenElseZero(hn::Lt(bound, limit), hn::Mul(bound, factor));
      chunk = hn::Add(chunk, hn::ConvertTo(di, hn::Ceil(term)));
    }
    sum += hn::GetLane(hn::SumOfLanes(di, chunk));
  }
  for (; i < count; ++i) {
    if (bounds[i] < below) sum += static_cast<std::int64_t>(std::ceil(bounds[i] * inverse_unit));
  }
  return sum;
}

float LargestFiniteBoundOneTarget(const float* HWY_RESTRICT bounds, std::size_t count) {
  const FloatTag d;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const FloatVec infinity = hn::Set(d, kInfinity), none = hn::Set(d, -kInfinity);
  FloatVec largest = none;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const FloatVec bound = hn::LoadU(d, bounds + i);
    largest = hn::Max(largest, hn::IfThenElse(hn::Lt(bound, infinity), bound, none));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) {
    if (bounds[i] < kInfinity) result = std::max(result, bounds[i]);
  }
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(BoundsFromOneTarget);
HWY_EXPORT(CountBoundsFromOneTarget);
HWY_EXPORT(FindGroupsFromOneTarget);
HWY_EXPORT(SumOfBoundsBelowOneTarget);
HWY_EXPORT(LargestFiniteBoundOneTarget);

std::uint64_t BoundsFrom(absl::Span<const float> bounds, float cut) {
  SOFTLOOKUP_DCHECK(bounds.size() <= 64) << bounds.size() << " bounds";
  return HWY_DYNAMIC_DISPATCH(BoundsFromOneTarget)(bounds.data(), bounds.size(), cut);
}

std::int64_t CountBoundsFrom(absl::Span<const float> bounds, float cut) {
  return HWY_DYNAMIC_DISPATCH(CountBoundsFromOneTarget)(bounds.data(), bounds.size(), cut);
}

void FindGroupsFrom(absl::Span<const float> bounds, std::int64_t group_size, float cut,
                    std::vector<std::int32_t>& found) {
  SOFTLOOKUP_DCHECK(group_size > 0 && bounds.size() % static_cast<std::size_t>(group_size) == 0)
      << bounds.size() << " bounds in groups of " << group_size;
  HWY_DYNAMIC_DISPATCH(FindGroupsFromOneTarget)(bounds, group_size, cut, found);
}

std::int64_t SumOfBoundsBelow(absl::Span<const float> bounds, float below, float inverse_unit) {
  return HWY_DYNAMIC_DISPATCH(SumOfBoundsBelowOneTarget)(bounds.data(), bounds.size(), below,
                                                         inverse_unit);
}

float LargestFiniteBound(absl::Span<const float> bounds) {
  return HWY_DYNAMIC_DISPATCH(LargestFiniteBoundOneTarget)(bounds.data(), bounds.size());
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
