#ifndef SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_
#define SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_

#include "core/kernels/float32_sums.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// What is summed over the components of a query q and a key k.
enum class Term {
  kProduct,            // q_i k_i
  kSquaredDifference,  // (q_i - k_i)^2, not expanded
};

// The three functions below set sums[q * kScratchStride + r] for every row r of `panels`. The sum
// is over `dims`, of term(queries[q], key of row r). queries[q] points to dims.count floats;
// query_count is in [1, kTileQueries]. Rows past block.row_count get sums against zero keys.
//
// The order of additions in a sum depends on neither the vector width nor query_count. The caller
// must choose the function and `how` by the query and the block, never by the other queries.
// Otherwise the bits of a sum would depend on the other queries.

// Forms the sums as `how` says. `how` must be one of kFloat32Sums. The sums of runs must stay in
// float32's range. The call prefetches the part `fetched` while it computes.
void ScoreRows(Term term, const Float32Sums& how, const BlockView& block, PanelRange panels,
               DimRange dims, const float* const* queries, int query_count, double* sums,
               const PanelPart& fetched = {});
// Does what ScoreRows() does, but writes float32 sums. dims.count must be at most how.run_dims,
// because only the sum of a single run is formed without float64.
void ScoreRowsFloat32(Term term, const Float32Sums& how, const BlockView& block, PanelRange panels,
                      DimRange dims, const float* const* queries, int query_count, float* sums,
                      const PanelPart& fetched = {});

// Forms the sums in float64 throughout. Products of float32 numbers are exact, and nothing
// overflows.
void ScoreRowsFloat64(Term term, const BlockView& block, PanelRange panels, DimRange dims,
                      const float* const* queries, int query_count, double* sums);

// Returns whether ScoreRows rounds a product and its addition once, by fused multiply-adds.
bool FusesMultiplyAdds();

// Sets norms[r] to |key of row r| over `dims`, in float64, for every row r of `panels`.
void KeyNorms(const BlockView& block, PanelRange panels, DimRange dims, double* norms);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_
