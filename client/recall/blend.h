#ifndef SOFTLOOKUP_CLIENT_RECALL_BLEND_H_
#define SOFTLOOKUP_CLIENT_RECALL_BLEND_H_

#include <vector>

#include "absl/types/span.h"

namespace softlookup::recall {

// Returns (a + weight * b) / |a + weight * b|, or `a` if that norm is 0. `a` and `b` must have the
// same size. The result has the same bits on every machine: Blend() takes sums and products in a
// fixed order, one square root, and one division per component. The build sets -ffp-contract=off,
// so that the compiler does not fuse a product and a sum.
std::vector<float> Blend(absl::Span<const float> a, double weight, absl::Span<const float> b);

}  // namespace softlookup::recall

#endif  // SOFTLOOKUP_CLIENT_RECALL_BLEND_H_
