#ifndef SOFTLOOKUP_CORE_KERNELS_BOUND_SEARCH_H_
#define SOFTLOOKUP_CORE_KERNELS_BOUND_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace softlookup::kernels {

// Searches among the bounds of panels (panel_bounds.h). No bound may be NaN.

// Returns a mask: bit i is set if bounds[i] is at least `cut`. Takes up to 64 bounds.
std::uint64_t BoundsFrom(absl::Span<const float> bounds, float cut);

// Returns the number of bounds that are at least `cut`.
std::int64_t CountBoundsFrom(absl::Span<const float> bounds, float cut);

// Appends to `found` the indices of the groups that have a bound of at least `cut`, in order. A
// group is group_size neighbouring bounds. The number of bounds must be a multiple of group_size.
void FindGroupsFrom(absl::Span<const float> bounds, std::int64_t group_size, float cut,
                    std::vector<std::int32_t>& found);

// Returns the sum of ceil(bound * inverse_unit) over the bounds below `below`. The product is
// rounded to float32. No bound may be negative, and no term above 2^20. The terms are integers, so
// their sum is exact in any order.
std::int64_t SumOfBoundsBelow(absl::Span<const float> bounds, float below, float inverse_unit);

// Returns the largest bound below infinity, or -infinity if there is none.
float LargestFiniteBound(absl::Span<const float> bounds);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_BOUND_SEARCH_H_
