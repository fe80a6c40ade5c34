#ifndef SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
#define SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_

#include "core/attention/block_scan.h"
#include "core/kernels/logits.h"
#include "core/kernels/score_rows.h"

namespace softlookup {

// What forms a query's sums over the components of a block's keys.
enum class SumsBy { kTiles, kInt8Dots, kFloat32Runs, kFloat64 };

// How a query is scored against a block, and its scores become weights.
struct PrecisionPath {
  SumsBy sums = SumsBy::kFloat64;
  // In float32 throughout: sums whose weights nobody else wants to know. Else logits are float64.
  bool in_float32 = false;

  bool operator==(const PrecisionPath&) const = default;
};

// The fastest one that keeps the bound on errors. Depends on the query and the block alone, never
// on the query's neighbours. `rows` are those that may count.
PrecisionPath PrecisionPathFor(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, kernels::RowRange rows);

kernels::Term TermOf(Score score);

// What a sum of products is multiplied by to be a score.
double ScaleOf(const ScanPlan& plan);

// Sums up to this size leave float32 room for a run of any length, and factors from this size keep
// products with small weights out of its subnormals.
inline constexpr double kFloat32SumMax = 0x1p120;
inline constexpr double kFloat32FactorMin = 0x1p-60;

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
