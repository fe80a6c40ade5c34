#ifndef SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
#define SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_

#include <cstddef>
#include <optional>

#include "core/attention/block_scan.h"
#include "core/kernels/logits.h"
#include "core/kernels/score_rows.h"

namespace softlookup {

// How the products or squared differences of a query and the keys of a block are summed up over the
// components.
enum class SumsBy {
  kTiles,        // In integers, by the matrix unit (tile_scan.h).
  kInt8Dots,     // In integers, by VNNI, for INT8 keys (int8_scores.h).
  kFloat32Runs,  // In float32 within runs of components, in float64 across runs (float32_sums.h).
  kFloat64       // In float64 throughout.
};

// The arithmetic that scores a query against a block and turns the scores into weights.
struct PrecisionPath {
  SumsBy sums = SumsBy::kFloat64;
  std::size_t float32_sums_index = 0;  // Index in kernels::kFloat32Sums, for kFloat32Runs.
  // True if the sums over the components are float32 and become float32 weights directly. False:
  // they become float64 logits first.
  bool in_float32 = false;

  bool operator==(const PrecisionPath&) const = default;
};

// Returns the fastest path whose errors of logits stay within LogitErrorMax (error_budget.h). The
// path depends only on the plan, the query and the block, never on other queries. `rows` must be
// RowsOf(block, query).
PrecisionPath PrecisionPathFor(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, kernels::RowRange rows);

// Returns the path of the fastest float32 sums, without a bound on errors of logits. Returns the
// path of float64 sums if Float32SumsFor returns nothing.
PrecisionPath CoarsePathFor(const ScanPlan& plan, const PositionedBlock& block,
                            const HeadQuery& query, kernels::RowRange rows);

// Returns an upper bound on the error of logits whose sums are formed by
// kernels::kFloat32Sums[sums_index], for keys of norms up to key_norm_max.
double Float32LogitError(const ScanPlan& plan, const HeadQuery& query, double key_norm_max,
                         std::size_t sums_index);

// Returns the index in kernels::kFloat32Sums of the fastest sums whose logits have errors of at
// most `logit_error_max`. Returns nothing, so that the sums must be float64, in these cases:
// - No sums are that exact.
// - Rounding could change which rows answer (HARD, top_k, min_score).
// - Weights are logits (LINEAR).
// - The head has few components.
// - The score is a cosine, and the query is 0 or the block has no sketch with its keys' norms.
// - A term or an inverse norm could be too large or too small for float32.
// The index depends only on the plan, the query and the block.
std::optional<std::size_t> Float32SumsFor(const ScanPlan& plan, const PositionedBlock& block,
                                          const HeadQuery& query, double logit_error_max);

// Returns true if the plan has no matrix unit, and no entry of kernels::kFloat32Sums keeps errors
// of logits within LogitErrorMax for keys of norms up to key_norm_max. A scan of all rows then
// usually scores some rows in float64. A matrix unit may be precise enough, so the result is false
// with one.
bool NeedsFloat64(const ScanPlan& plan, const HeadQuery& query, double key_norm_max);

kernels::Term TermOf(Score score);

// Returns 1 / sqrt(components of the head) for SCALED_DOT, by which its sum is multiplied, and 1
// for all other scores.
double ScaleOf(const ScanPlan& plan);

// A term is a product or a squared difference of one component. If no |term| is above
// kFloat32SumMax, the float32 sum of a run does not overflow. If the largest |term| is at least
// kFloat32FactorMin, the terms that matter are not subnormal in float32. Nor are the products of
// weights and values that matter, if the largest weight and the largest value each reach
// kFloat32FactorMin. These two need not be those of one row.
inline constexpr double kFloat32SumMax = 0x1p120;
inline constexpr double kFloat32FactorMin = 0x1p-60;
// The inverses of smaller norms may be beyond float32's range.
inline constexpr float kFloat32NormMin = 0x1p-120f;

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
