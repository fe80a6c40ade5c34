#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ATTENTION_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace softlookup {

// The enumerators of this file have the numbers of proto/softlookup/v1/attention.proto, which
// defines what each one means.
enum class Score {
  kUnspecified = 0,
  kDot = 1,
  kScaledDot = 2,
  kCosine = 3,
  kEuclidean = 4,
  kSquaredEuclidean = 5,
};
inline constexpr Score kScoreMax = Score::kSquaredEuclidean;

enum class Mode { kUnspecified = 0, kSoft = 1, kHard = 2, kLinear = 3 };

enum class WeightsMode { kUnspecified = 0, kNone = 1, kTop = 2, kAll = 3 };

// How keys are scored, and how scores become weights. Rows are excluded in this order: the
// request's RowFilter, causal, min_score, top_k. The remaining rows get weights.
struct AttentionOptions {
  Score score = Score::kUnspecified;  // Unspecified: the store's. In an Attend: SCALED_DOT.
  std::optional<double> temperature;  // In [1e-6, 1e6]. Unset: the store's. In an Attend: 1.
  Mode mode = Mode::kUnspecified;     // Unspecified: soft.
  std::uint32_t top_k = 0;            // 0: all rows.
  std::optional<double> min_score;    // Finite. Rows with a lower score do not count.
  // In (0, 1]. Unset: 1, no decay. Adds age * ln(recency_decay) to a row's logit. The row at the
  // last position before the filter's end has age 0, the one before it age 1, and so on.
  std::optional<double> recency_decay;
  bool causal = false;  // Query t, from 0, sees positions <= causal_offset + t.
  std::uint64_t causal_offset = 0;
  WeightsMode weights = WeightsMode::kUnspecified;  // Unspecified: none.
  std::uint32_t top_weights = 0;                    // 0: the default, 10.
  // Largest error allowed in an answer, in the unit of QueryStats::error_bound. In [0, 1]. A value
  // below kErrorBoundDefault, or none, counts as kErrorBoundDefault. Only SOFT mode uses max_error.
  std::optional<double> max_error;
};

// Default bound on the error of an answer, in the unit of QueryStats::error_bound. Rule 1 of
// docs/ARCHITECTURE.md promises it.
inline constexpr double kErrorBoundDefault = 1e-5;

// Statistics of one head query: one query in one head.
struct QueryStats {
  double log_sum_exp = 0;  // -inf if no row counts, or if the mode is not soft.
  double max_logit = 0;    // -inf if no row counts.
  std::uint64_t counted_rows = 0;
  double entropy = 0;  // Nats; 0 if the mode is not soft.
  // Proven bound on the error of a component of the answer. The unit is the largest magnitude of a
  // value component in the store, or in the request of an Attend. The bound holds while logits stay
  // under 128 in size. It does not include the answer's own rounding to float32.
  double error_bound = 0;
  std::uint64_t summed_rows = 0;  // Rows whose values are in the answer; at most counted_rows.
};

struct WeightedRow {
  std::uint64_t position = 0;
  std::optional<std::uint64_t> id;  // Unset if the row has none.
  double weight = 0;
  double score = 0;  // Before it is divided by the temperature.
};

// Weights of one head query. Rows are sorted by weight, descending, then by position.
struct QueryWeights {
  std::vector<WeightedRow> rows;
  double remaining_weight = 0;  // Sum of the weights of counted rows that are not in `rows`.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ATTENTION_H_
