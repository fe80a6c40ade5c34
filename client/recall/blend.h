#ifndef SOFTLOOKUP_CLIENT_RECALL_BLEND_H_
#define SOFTLOOKUP_CLIENT_RECALL_BLEND_H_

#include <vector>

#include "absl/types/span.h"

namespace softlookup::recall {

// (a + weight * b) / |a + weight * b|, or `a` if that norm is 0. `a` and `b` must have one size.
// The result has the same bits on every machine: it takes sums and products in a fixed order, one
// square root, and one division per component.
std::vector<float> Blend(absl::Span<const float> a, double weight, absl::Span<const float> b);

}  // namespace softlookup::recall

#endif  // SOFTLOOKUP_CLIENT_RECALL_BLEND_H_
