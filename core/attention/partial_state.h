#ifndef SOFTLOOKUP_CORE_ATTENTION_PARTIAL_STATE_H_
#define SOFTLOOKUP_CORE_ATTENTION_PARTIAL_STATE_H_

#include <cstdint>
#include <limits>

#include "softlookup/attention.h"

namespace softlookup {

// What is known of one query (and head) after some of its rows. The weighted sum of values, `sum`
// in the functions below, is kept beside it: value_dim doubles.
struct PartialState {
  double max_logit = -std::numeric_limits<double>::infinity();
  double weight = 0;    // SOFT: sum of exp(logit - max_logit). LINEAR: sum of the logits.
  double weighted = 0;  // SOFT: sum of exp(logit - max_logit) * (logit - max_logit).
  std::uint64_t counted_rows = 0;
  std::uint64_t max_position = 0;  // HARD: the lowest position with max_logit.
};

// Adds the state of later rows to that of earlier ones. Merging the same states in the same order
// gives the same bits. With HARD the sums are not touched.
void Merge(Mode mode, const PartialState& later, const double* later_sum, std::int64_t value_dim,
           PartialState& state, double* sum);

// log_sum_exp and entropy are those of SOFT; other modes have none.
QueryStats StatsOf(Mode mode, const PartialState& state);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PARTIAL_STATE_H_
