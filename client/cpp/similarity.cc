#include "softlookup/similarity.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace softlookup {
namespace {

double CosineOf(absl::Span<const float> query, absl::Span<const float> key) {
  double product = 0;
  double query_square = 0;
  double key_square = 0;
  for (std::size_t i = 0; i < query.size(); ++i) {
    product += double{query[i]} * key[i];
    query_square += double{query[i]} * query[i];
    key_square += double{key[i]} * key[i];
  }
  // Takes one root, that of the product of both squares, so that a vector's cosine with itself is
  // exactly 1. This product stays far from the ends of float64's range, because its factors come
  // from float32. The clamp is needed because rounding can make the cosine larger than 1 or smaller
  // than -1.
  const double norms = std::sqrt(query_square * key_square);
  return norms > 0 ? std::clamp(product / norms, -1.0, 1.0) : 0;
}

double EuclideanOf(absl::Span<const float> query, absl::Span<const float> key) {
  double square = 0;
  for (std::size_t i = 0; i < query.size(); ++i) {
    const double difference = double{query[i]} - key[i];
    square += difference * difference;
  }
  return -std::sqrt(square);
}

}  // namespace

double Similarity::operator()(absl::Span<const float> query, absl::Span<const float> key) const {
  if (query.size() != key.size()) std::abort();
  return score_ == v1::SCORE_COSINE ? CosineOf(query, key) : EuclideanOf(query, key);
}

}  // namespace softlookup
