#include "client/recall/blend.h"

#include <cmath>
#include <cstddef>

namespace softlookup::recall {

std::vector<float> Blend(absl::Span<const float> a, double weight, absl::Span<const float> b) {
  std::vector<double> sum(a.size());
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum[i] = a[i] + weight * b[i];
    square += sum[i] * sum[i];
  }
  if (square == 0) return std::vector<float>(a.begin(), a.end());
  const double norm = std::sqrt(square);
  std::vector<float> blend(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) blend[i] = static_cast<float>(sum[i] / norm);
  return blend;
}

}  // namespace softlookup::recall
