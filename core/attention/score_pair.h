#ifndef SOFTLOOKUP_CORE_ATTENTION_SCORE_PAIR_H_
#define SOFTLOOKUP_CORE_ATTENTION_SCORE_PAIR_H_

#include <cmath>
#include <cstdint>

#include "softlookup/attention.h"

namespace softlookup {

// Returns the score of one query and one key of `dim` components each, in float64. This defines the
// scores. `score` must not be kUnspecified.
template <typename Key>
double ScorePair(Score score, const float* query, const Key* key, std::int64_t dim) {
  double product = 0, query_square = 0, key_square = 0, difference_square = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const double q = query[i], k = key[i];
    product += q * k;
    query_square += q * q;
    key_square += k * k;
    difference_square += (q - k) * (q - k);
  }
  switch (score) {
    case Score::kDot:
      return product;
    case Score::kCosine: {
      const double norms = std::sqrt(query_square) * std::sqrt(key_square);
      return norms > 0 ? product / norms : 0;
    }
    case Score::kEuclidean:
      return -std::sqrt(difference_square);
    case Score::kSquaredEuclidean:
      return -difference_square;
    case Score::kScaledDot:
    case Score::kUnspecified:
      break;
  }
  return product / std::sqrt(static_cast<double>(dim));
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_SCORE_PAIR_H_
