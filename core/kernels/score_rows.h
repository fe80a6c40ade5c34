#ifndef SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_
#define SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_

#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// What is summed over the components of a query q and a key k.
enum class Term {
  kProduct,            // q_i k_i
  kSquaredDifference,  // (q_i - k_i)^2, without cancellation
};

// How the sum is formed. The choice must depend only on the query, the block and the shape.
// Otherwise the bits of a sum would depend on the query's neighbours.
enum class SumIn {
  // float32 in runs of kFloat32RunDims components, float64 across runs. A run is split into chains
  // of kFloat32ChainDims components, whose sums are added in pairs by a binary tree. The sums of
  // runs must stay in float32's range. The error is at most kFloat32Roundings * 2^-24 times the sum
  // of the terms' magnitudes.
  kFloat32Runs,
  // float64 throughout. Products of float32 numbers are exact, and nothing overflows.
  kFloat64,
};
inline constexpr std::int64_t kFloat32ChainDims = 5;
inline constexpr int kFloat32TreeLevels = 5;
inline constexpr std::int64_t kFloat32RunDims = kFloat32ChainDims << kFloat32TreeLevels;
// The most roundings of a term: its own, one for each later term in its chain, and one for each
// level of the tree.
inline constexpr std::int64_t kFloat32Roundings = kFloat32ChainDims + kFloat32TreeLevels;

// Sets sums[q * kScratchStride + r] to the sum over `dims` of term(queries[q], key of row r), for
// every row r of `panels`. queries[q] points to dims.count floats; query_count is in
// [1, kTileQueries]. Rows past block.row_count get sums against zero keys.
//
// The order of additions in a sum depends on neither the vector width nor query_count. The call
// prefetches `fetched` meanwhile, except in SumIn::kFloat64.
void ScoreRows(Term term, SumIn sum_in, const BlockView& block, PanelRange panels, DimRange dims,
               const float* const* queries, int query_count, double* sums,
               const PanelPart& fetched = {});

// Does the same as ScoreRows in SumIn::kFloat32Runs, with float32 sums. dims.count must be at most
// kFloat32RunDims, because a single run needs no float64.
void ScoreRowsFloat32(Term term, const BlockView& block, PanelRange panels, DimRange dims,
                      const float* const* queries, int query_count, float* sums,
                      const PanelPart& fetched = {});

// Sets norms[r] to |key of row r| over `dims`, in float64, for every row r of `panels`.
void KeyNorms(const BlockView& block, PanelRange panels, DimRange dims, double* norms);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_SCORE_ROWS_H_
