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
  // True if the sums over the components and the weights are float32, without float64 logits in
  // between.
  bool in_float32 = false;

  bool operator==(const PrecisionPath&) const = default;
};

// Returns the fastest path whose errors of logits stay within LogitErrorMax (error_budget.h). It
// depends only on the plan, the query and the block, never on other queries of the batch. `rows`
// are the rows that may count.
PrecisionPath PrecisionPathFor(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, kernels::RowRange rows);

// Returns the path of the fastest float32 sums, whatever their errors. Returns the path of float64
// if Float32SumsFor returns nothing.
PrecisionPath CoarsePathFor(const ScanPlan& plan, const PositionedBlock& block,
                            const HeadQuery& query, kernels::RowRange rows);

// Returns an upper bound on the error of logits whose sums are formed by
// kernels::kFloat32Sums[sums_index], for keys of norms up to key_norm_max.
double Float32LogitError(const ScanPlan& plan, const HeadQuery& query, double key_norm_max,
                         std::size_t sums_index);

// Returns the index in kernels::kFloat32Sums of the fastest sums whose logits have errors of at
// most `logit_error_max`. Returns nothing if there is none, if scores decide which rows count, or
// if weights are logits. Also returns nothing if the head has few components, or if a cosine lacks
// the norms of a sketch. The same holds if a term or an inverse norm could leave float32's range.
// The index depends only on the plan, the query and the block.
std::optional<std::size_t> Float32SumsFor(const ScanPlan& plan, const PositionedBlock& block,
                                          const HeadQuery& query, double logit_error_max);

// Returns true if no entry of kernels::kFloat32Sums keeps the bound on errors of logits for keys of
// norms up to key_norm_max, so that a scan of all rows scores some of them in float64. Returns
// false if the plan has a matrix unit, which may be precise enough.
bool NeedsFloat64(const ScanPlan& plan, const HeadQuery& query, double key_norm_max);

kernels::Term TermOf(Score score);

// Returns the factor that turns a sum of products into a score.
double ScaleOf(const ScanPlan& plan);

// If no |term| is above kFloat32SumMax, the float32 sum of a run does not overflow. If the largest
// |term| is at least kFloat32FactorMin, the terms that matter are not subnormal. The same holds if
// the largest size of each of a product's two factors is at least kFloat32FactorMin.
inline constexpr double kFloat32SumMax = 0x1p120;
inline constexpr double kFloat32FactorMin = 0x1p-60;
// The inverses of smaller norms may be beyond float32's range.
inline constexpr float kFloat32NormMin = 0x1p-120f;

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
