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

// Each of the three functions below scores query_count queries against the rows of `panels`. It
// sets sums[q * kScratchStride + r] for each query q and each row r. A sum is over the components
// `dims` of the row's key: each component adds what `term` says. r counts from the block's first
// row, even if `panels` begins later. queries[q] points to dims.count floats, the first of which
// belongs to component dims.begin of a key. query_count is in [1, kTileQueries]. The last panel may
// have rows from block.row_count on. They get sums, too, as rows whose keys are zero.
//
// The order of additions in a sum depends on neither the vector width nor query_count. The caller
// must choose the function and `how` by the query and the block, never by the other queries.
// Otherwise the bits of a sum would depend on the other queries.

// Forms the sums as `how` says. `how` must be one of kFloat32Sums. The sum of each run must stay in
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

// Returns whether ScoreRows() uses fused multiply-adds on this CPU. They round a product and its
// addition once, not twice.
bool FusesMultiplyAdds();

// Sets norms[r] to the norm of row r's key over its components `dims`, in float64, for every row r
// of `panels`. r counts from the block's first row.
void KeyNorms(const BlockView& block, PanelRange panels, DimRange dims, double* norms);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_
