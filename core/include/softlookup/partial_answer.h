#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "softlookup/attention.h"

namespace softlookup {

// A row that counts for a query: no filter leaves it out.
struct CountedRow {
  std::uint64_t position = 0;
  double logit = 0;
  double score = 0;  // Before temperature.

  friend bool operator==(const CountedRow&, const CountedRow&) = default;
};

// The order of best rows: larger logits first, then lower positions.
inline bool RanksBefore(const CountedRow& a, const CountedRow& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.position < b.position;
}

// What one query, in one head, has found in some rows. The states of disjoint rows merge into the
// state of all of them. `sum`, the weighted sum of the rows' values, belongs to the state and is
// kept beside it: value_dim doubles, in the unit of `weight`.
struct PartialState {
  double max_logit = -std::numeric_limits<double>::infinity();
  double weight = 0;    // SOFT: sum of exp(logit - max_logit). LINEAR: sum of the logits.
  double weighted = 0;  // SOFT: sum of exp(logit - max_logit) * (logit - max_logit), for entropy.
  std::uint64_t counted_rows = 0;
  std::uint64_t max_position = 0;  // HARD: the lowest position with max_logit.
};

// Merges the state of later rows into that of earlier ones. Merging the same states in the same
// order gives the same bits. HARD leaves the sums alone, which may then be empty. The formula is
// that of online softmax: Milakov and Gimelshein, 2018, arXiv:1805.02867.
void Merge(Mode mode, const PartialState& later, absl::Span<const double> later_sum,
           PartialState& state, absl::Span<double> sum);

// log_sum_exp and entropy are those of SOFT; other modes have none.
QueryStats StatsOf(Mode mode, const PartialState& state);

// The answer's values in SOFT and LINEAR mode: `sum` over the sum of weights, or 0 if no row
// counts, within float32's range. Writes sum.size() components.
void WriteValues(Mode mode, const PartialState& state, absl::Span<const double> sum, float* values);

// The answer to one query, in one head, over a range of a store's rows, for merging with the
// answers over other ranges. With top_k it has best rows and no sums: merge it as HARD, and weigh
// the best rows once those of all ranges are known.
struct PartialAnswer {
  // The first row's position in the whole store. The positions below count from it.
  std::uint64_t base_position = 0;
  PartialState state;
  std::vector<double> sum;            // [value_dim]. Empty in HARD mode and with top_k.
  std::vector<CountedRow> best_rows;  // As RanksBefore orders them.
};

// Merges the answer over a later range of rows into that over an earlier one. Of the best rows of
// both, keeps the first `best_rows_max`.
void Merge(Mode mode, const PartialAnswer& later, std::size_t best_rows_max,
           PartialAnswer& earlier);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
