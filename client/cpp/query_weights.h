#ifndef SOFTLOOKUP_CLIENT_CPP_QUERY_WEIGHTS_H_
#define SOFTLOOKUP_CLIENT_CPP_QUERY_WEIGHTS_H_

#include <algorithm>
#include <cmath>

#include "softlookup/v1/attention.pb.h"

namespace softlookup::client_internal {

// Returns whether one index fits all lists of `weights`. `ids` and `has_ids` may be empty.
inline bool ListsFit(const v1::QueryWeights& weights) {
  const int rows = weights.positions_size();
  return weights.weights_size() == rows && weights.scores_size() == rows &&
         (weights.ids_size() == 0 || weights.ids_size() == rows) &&
         (weights.has_ids_size() == 0 || weights.has_ids_size() == weights.ids_size());
}

// Returns whether every weight is finite, that of the rows that are not listed included.
inline bool WeightsAreFinite(const v1::QueryWeights& weights) {
  return std::isfinite(weights.remaining_weight()) &&
         std::all_of(weights.weights().begin(), weights.weights().end(),
                     [](double weight) { return std::isfinite(weight); });
}

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_QUERY_WEIGHTS_H_
