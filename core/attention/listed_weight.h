#ifndef SOFTLOOKUP_CORE_ATTENTION_LISTED_WEIGHT_H_
#define SOFTLOOKUP_CORE_ATTENTION_LISTED_WEIGHT_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace softlookup {

// Rows of equal weight are listed by position. So a collector of the best rows must know which rows
// will have equal weights. But exp() gives many different logits the same weight. Which logits have
// equal weights depends on the largest logit and on the sum, which are known only after the scan.
// So listed SOFT weights are those of rounded logits, and weights that are not normal numbers are
// 0. Then two weights are equal only if their rounded logits are equal, or if both weights are 0.

// Returns `logit` rounded down to a multiple of 2^-42, which changes weights by a factor of less
// than 1 + 2^-41. A weight that is not 0 has an exponent above -709. For exponents of this size,
// float64 can tell apart two that differ by 2^-42, and exp() gives them different weights.
inline double RoundedLogit(double logit) {
  // A logit this large is a multiple of 2^-42 already, and the product below could overflow.
  if (std::abs(logit) >= 0x1p10) return logit;
  return std::floor(logit * 0x1p42) * 0x1p-42;
}

// Returns the weight to list for a row. `ln_weight` is the logarithm of the sum of
// exp(logit - max_logit) over all rows.
inline double ListedWeight(double logit, double max_logit, double ln_weight) {
  const double below_max = RoundedLogit(logit) - RoundedLogit(max_logit);
  const double weight = std::exp(below_max - ln_weight);
  return weight < std::numeric_limits<double>::min() ? 0 : std::min(1.0, weight);
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LISTED_WEIGHT_H_
