#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "softlookup/attention.h"

namespace softlookup {

// A row that the filter, causal and min_score admit. It counts unless top_k leaves it out.
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

// What a head query has found in some rows. The states of disjoint sets of rows merge into the
// state of all these rows. The weighted sum of the rows' values also belongs to the state, but is
// kept in an array of its own. That array has one double for each component of the head's part of a
// value. The weight of each value in it is the row's term of `weight`.
struct PartialState {
  double max_logit = -std::numeric_limits<double>::infinity();
  double weight = 0;    // SOFT: sum of exp(logit - max_logit). LINEAR: sum of the logits.
  double weighted = 0;  // SOFT: sum of exp(logit - max_logit) * (logit - max_logit), for entropy.
  std::uint64_t counted_rows = 0;
  std::uint64_t max_position = 0;  // HARD: the lowest position with max_logit.
  std::uint64_t summed_rows = 0;   // Rows whose values were added up.
  // SOFT: an upper bound on a sum over counted rows whose values were not added up. A row that
  // `weight` does not include adds exp(logit - max_logit). A row that `weight` includes adds half
  // of that, because it moves the answer half as far (core/attention/error_budget.h).
  double left_out = 0;
};

// Merges `later`, the state of later rows, into `state`. Merging the same states in the same
// order gives the same bits. HARD uses neither `sum` nor `later_sum`, so both may be empty. The
// formula is that of online softmax: Milakov and Gimelshein, 2018, arXiv:1805.02867.
void Merge(Mode mode, const PartialState& later, absl::Span<const double> later_sum,
           PartialState& state, absl::Span<double> sum);

// Returns the statistics of `state`. In modes other than SOFT, log_sum_exp is -inf and entropy is
// 0. error_bound is 0 if no row counts, and in HARD mode, which copies a value. In LINEAR mode
// error_bound is kErrorBoundDefault.
//
// In SOFT mode error_bound is arithmetic_error + 2 * left_out / weight. `arithmetic_error` is a
// bound on the error by rounding. The factor is 2 for the worst case. The mean of the values left
// out is then the largest value, and the mean of the other values is its negative.
QueryStats StatsOf(Mode mode, const PartialState& state,
                   double arithmetic_error = kErrorBoundDefault);

// Writes the sum.size() components of the answer to `values`. SOFT divides each component of `sum`
// by state.weight. Other modes copy `sum`. All components are 0 if no row counts. Clamps the
// components to float32's range.
void WriteValues(Mode mode, const PartialState& state, absl::Span<const double> sum, float* values);

// The answer to a head query over a range of a store's rows, for merging with the answers over
// other ranges. With top_k, the answer has best rows and no sums. Merge such answers as HARD. Their
// best rows get weights once the best rows of all ranges are known.
struct PartialAnswer {
  // Position of the range's first row in the whole store. Positions in `state` and `best_rows`
  // count from it.
  std::uint64_t base_position = 0;
  PartialState state;
  // The weighted sum of values that belongs to `state`. Empty in HARD mode and with top_k.
  std::vector<double> sum;
  std::vector<CountedRow> best_rows;  // In the order of RanksBefore.
};

// Merges the answer over a later range of rows into the answer over an earlier range. Of the best
// rows of `later` and `earlier`, keeps the first `best_rows_max` by RanksBefore.
void Merge(Mode mode, const PartialAnswer& later, std::size_t best_rows_max,
           PartialAnswer& earlier);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
