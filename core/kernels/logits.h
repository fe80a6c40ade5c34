#ifndef SOFTLOOKUP_CORE_KERNELS_LOGITS_H_
#define SOFTLOOKUP_CORE_KERNELS_LOGITS_H_

#include <limits>

#include "core/kernels/panel.h"

namespace softlookup::kernels {

// How a sum from ScoreRows becomes a score.
enum class ScoreForm {
  kScaled,        // scale * sum
  kCosine,        // sum / (query_norm * key_norm), or 0 where the divisor is 0
  kNegativeRoot,  // -sqrt(sum)
  kNegative,      // -sum
};

// How one query's sums for the rows of one block become logits. Row r counts from the block's first
// row.
struct LogitParams {
  ScoreForm form = ScoreForm::kScaled;
  double scale = 1;                   // Used by kScaled only.
  double query_norm = 0;              // Used by kCosine only.
  const double* key_norms = nullptr;  // Used by kCosine only. From KeyNorms().
  double inverse_temperature = 1;
  double min_score = -std::numeric_limits<double>::infinity();
  // Row r may count if bit r % 64 of word r / 64 is set. Null: all rows may count.
  const std::uint64_t* row_mask = nullptr;
  // Row r's age times ln_decay is added to its logit. The age is ages[r] if `ages` is set, else
  // age_of_row_0 - r. ages[r] must be finite for every row of the panels.
  double ln_decay = 0;
  double age_of_row_0 = 0;
  const double* ages = nullptr;
};

struct LogitSummary {
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t counted_rows = 0;
};

// Replaces sums[r] by the score of row r, and sets logits[r] to its logit, for every row r of
// `panels`. r counts from the block's first row. A row outside `rows`, outside row_mask or below
// min_score does not count: its logit is -inf. Returns the largest logit and the number of rows
// that count.
LogitSummary MakeLogits(const LogitParams& params, PanelRange panels, RowRange rows, double* sums,
                        double* logits);

struct SoftmaxSums {
  double weight = 0;    // sum of exp(logit - max)
  double weighted = 0;  // sum of exp(logit - max) * (logit - max)
};

// Sets weights[r] to exp(logits[r] - max) for every row r of `panels`. r counts from the block's
// first row. The difference is rounded to float32, which changes a weight by up to 6e-8 of itself
// for each unit of the difference. The computed exponential of the rounded difference is within 2
// ulp. A weight below exp(-87) is set to 0. `max` must be finite and not below any logit. The
// returned sums do not depend on the vector width.
SoftmaxSums MakeSoftmaxWeights(const double* logits, double max, PanelRange panels, float* weights);

// The smallest and the largest sums[r] over the rows r of `panels`. r counts from the block's first
// row.
struct SumRange {
  float min = 0;
  float max = 0;
};
SumRange RangeOfSums(PanelRange panels, const float* sums);

// Does what MakeSoftmaxWeights() does for the logits factor * sums[r], without storing the logits.
// `best` must be the sum with the largest logit, max. `factor`, sums[r] - best and their product
// are each rounded to float32. So for each unit of max - logit, a weight may be off by 1.8e-7 of
// itself, instead of 6e-8. This makes no weight wrong by more than 7e-8 of the largest weight.
SoftmaxSums MakeSoftmaxWeightsOfSums(const float* sums, double factor, float best,
                                     PanelRange panels, float* weights);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_LOGITS_H_
