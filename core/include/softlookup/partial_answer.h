#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_

#include <cstdint>
#include <limits>
#include <optional>
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

// A row whose value is multiplied by `weight` and added to a sum.
struct WeighedRow {
  std::uint64_t position = 0;
  double weight = 0;

  friend bool operator==(const WeighedRow&, const WeighedRow&) = default;
};

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

// A running memory that a lookup attends to as one more row.
struct MemoryRow {
  std::uint64_t position = 0;  // Of the last row that the memory stands for.
  double multiplicity = 1;     // At least 1. Multiplies the memory's weight.

  friend bool operator==(const MemoryRow&, const MemoryRow&) = default;
};

// What decides how the rows that a pass has found become an answer. Partial answers to one lookup
// have equal shapes.
struct AnswerShape {
  std::int64_t query_count = 0;  // T
  std::int64_t num_heads = 1;
  std::int64_t value_dim = 0;  // Total over heads.
  Mode mode = Mode::kSoft;     // Not kUnspecified.
  // top_k if it can leave rows out, or else 0.
  std::uint64_t selected_max = 0;
  WeightsMode weights = WeightsMode::kNone;  // Not kUnspecified.
  std::int64_t top_weights = 0;              // Rows to list for each head query, with TOP.
  // Largest error that the lookup allows, in the unit of QueryStats::error_bound.
  double error_max = kErrorBoundDefault;
  std::optional<MemoryRow> memory;

  std::int64_t head_query_count() const { return query_count * num_heads; }
  std::int64_t head_value_dim() const { return value_dim / num_heads; }
  // Returns true if top_k can leave rows out. A second phase then reads the values of the rows that
  // it leaves (partial_lookup.h).
  bool selects_rows() const { return selected_max > 0; }
  bool lists_rows() const { return weights != WeightsMode::kNone; }

  friend bool operator==(const AnswerShape&, const AnswerShape&) = default;
};

// Rows of a head query that an answer lists or selects, or may have to.
struct RankedRows {
  // If top_k selects rows: the selected_max rows that come first by RanksBefore. Otherwise, with
  // weights ALL: all counted rows, and with TOP: the top_weights rows of the largest weights (SOFT)
  // or logits. In partial answers the rows are in that order, and those of ALL in the order of
  // positions.
  std::vector<CountedRow> best;
  // The counted rows of the lowest positions, top_weights of them, in the order of positions. A
  // list that is longer than the number of rows with a weight above 0 goes on with rows of weight
  // 0, by position. Only for weights TOP in the modes SOFT and HARD, if top_k selects no rows.
  std::vector<CountedRow> first;
  // The running memory. Only for lists in LINEAR mode, if top_k selects no rows. `best` ranks rows
  // by logit, but the memory's weight is a multiple of its logit.
  std::optional<CountedRow> unranked_memory;
};

// The answer to a head query over a part of the rows that it attends to. Answers over disjoint
// parts merge into the answer over all of these rows.
struct PartialAnswer {
  // Not used if top_k selects rows: which rows have a weight is known once all parts are merged.
  PartialState state;
  // The weighted sum of values that belongs to `state`, which has one component for each of the
  // head's part of a value. In HARD mode: the value of the row at state.max_position. Empty if no
  // row counts, or if top_k selects rows.
  std::vector<double> sum;
  RankedRows rows;
  // SOFT: a bound on the error that rounding alone makes, in the unit of QueryStats::error_bound.
  double arithmetic_error = 0;
};

// Merges the answer over later rows into the answer over earlier ones. All positions of `earlier`
// must be below those of `later`, but for a running memory's. Merging the same answers in the same
// order gives the same bits. Merging into PartialAnswer() gives `later`.
void Merge(const AnswerShape& shape, PartialAnswer later, PartialAnswer& earlier);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_PARTIAL_ANSWER_H_
