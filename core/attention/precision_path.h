#ifndef SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
#define SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_

#include "core/attention/block_scan.h"
#include "core/kernels/logits.h"
#include "core/kernels/score_rows.h"

namespace softlookup {

// How the products or squared differences of a query and the keys of a block are summed up over
// the components.
enum class SumsBy { kTiles, kInt8Dots, kFloat32Runs, kFloat64 };

// The arithmetic that scores a query against a block and turns the scores into weights.
struct PrecisionPath {
  SumsBy sums = SumsBy::kFloat64;
  // True: from the sums to the weights, all numbers are float32. False: the logits are float64.
  bool in_float32 = false;

  bool operator==(const PrecisionPath&) const = default;
};

// The fastest path that keeps the bound on errors. It depends on the query and the block alone,
// never on other queries of the batch. `rows` are the rows that may count.
PrecisionPath PrecisionPathFor(const ScanPlan& plan, const PositionedBlock& block,
                               const HeadQuery& query, kernels::RowRange rows);

kernels::Term TermOf(Score score);

// The factor that turns a sum of products into a score.
double ScaleOf(const ScanPlan& plan);

// Float32 sums of at most kFloat32SumMax cannot overflow in a run of any length. Products of small
// weights with factors of at least kFloat32FactorMin are not subnormal.
inline constexpr double kFloat32SumMax = 0x1p120;
inline constexpr double kFloat32FactorMin = 0x1p-60;

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PRECISION_PATH_H_
