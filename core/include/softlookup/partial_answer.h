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
  double score = 0;  // Before it is divided by the temperature.

  friend bool operator==(const CountedRow&, const CountedRow&) = default;
};

// Returns whether `a` comes before `b` in the order of best rows: larger logits first, then lower
// positions.
inline bool RanksBefore(const CountedRow& a, const CountedRow& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.position < b.position;
}

// What a head query has found in some rows. The states of disjoint rows merge into the state of all
// of them. The weighted sum of the rows' values also belongs to the state, but is kept beside it:
// one double for each component of the head's part of a value, with the weights that `weight` adds
// up.
struct PartialState {
  double max_logit = -std::numeric_limits<double>::infinity();
  double weight = 0;    // SOFT: sum of exp(logit - max_logit). LINEAR: sum of the logits.
  double weighted = 0;  // SOFT: sum of exp(logit - max_logit) * (logit - max_logit), for entropy.
  std::uint64_t counted_rows = 0;
  std::uint64_t max_position = 0;  // HARD: the lowest position with max_logit.
  std::uint64_t summed_rows = 0;   // Rows whose values were added up.
  // SOFT: an upper bound on the sum of exp(logit - max_logit) over counted rows whose values were
  // not added up. Rows whose weights are part of `weight` count half.
  double left_out = 0;
};

// Merges the state of later rows into that of earlier ones. Merging the same states in the same
// order gives the same bits. HARD does not use the sums, which may then be empty. The formula is
// that of online softmax: Milakov and Gimelshein, 2018, arXiv:1805.02867.
void Merge(Mode mode, const PartialState& later, absl::Span<const double> later_sum,
           PartialState& state, absl::Span<double> sum);

// Returns the statistics of `state`. In modes other than SOFT, log_sum_exp is -inf and entropy is
// 0. error_bound is 0 if no row counts, and in HARD mode, which copies a value. In LINEAR mode it
// is kErrorBoundDefault. In SOFT mode it is `arithmetic_error`, a bound on the error by rounding,
// plus twice the ratio of the weight that was left out to the weight that was not. The factor is 2
// because the mean of the values left out and that of the others can be as far apart as the largest
// value and its negative.
QueryStats StatsOf(Mode mode, const PartialState& state,
                   double arithmetic_error = kErrorBoundDefault);

// Writes the answer's values: `sum`, which SOFT divides by the sum of weights, or 0 if no row
// counts. Clamps them to float32's range. Writes sum.size() components.
void WriteValues(Mode mode, const PartialState& state, absl::Span<const double> sum, float* values);

// The answer to a head query over a range of a store's rows, for merging with the answers over
// other ranges. With top_k it has best rows and no sums: merge it as HARD, and weigh the best rows
// once those of all ranges are known.
struct PartialAnswer {
  // Position of the range's first row in the whole store. The positions below count from it.
  std::uint64_t base_position = 0;
  PartialState state;
  std::vector<double> sum;            // As for PartialState. Empty in HARD mode and with top_k.
  std::vector<CountedRow> best_rows;  // In the order of RanksBefore.
};

// Merges the answer over a later range of rows into that over an earlier one. Of the best rows of
// both, keeps the first `best_rows_max`.
void Merge(Mode mode, const PartialAnswer& later, std::size_t best_rows_max,
           PartialAnswer& earlier);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
