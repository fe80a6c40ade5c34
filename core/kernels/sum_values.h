#ifndef SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_
#define SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// The number of rows in a run. The weighted values of a run are added up in float32, and the sums
// of runs in float64.
inline constexpr std::int64_t kFloat32RunRows = 128;

// Returns the number of elements from one query's sums to the next query's sums in the parameter
// `sums` of the functions below. It is a multiple of 16, so that the last vector needs no mask.
constexpr std::int64_t PaddedValueDim(std::int64_t dim_count) {
  return (dim_count + kPanelRows - 1) / kPanelRows * kPanelRows;
}

// For each query q, sums weights[q * kScratchStride + r] * value of row r over the rows r of
// `panels`. r counts from the block's first row. Adds component dims.begin + i of the sum to
// element q * PaddedValueDim(dims.count) + i of `sums`. query_count is in [1, kTileQueries]. The
// elements of `sums` for components past dims.count receive garbage.
//
// Rows are added in order: in float32 within runs, in float64 across runs. A run has
// kFloat32RunRows rows and starts at a multiple of kFloat32RunRows. Neither the vector width nor
// query_count changes the order. A row of weight 0 changes no bit.
//
// The sum of a run must stay in float32's range. For INT8 values, each weight is first multiplied
// by its row's scale and rounded once. These products must not overflow. A product that underflows
// is lost. The call prefetches the part `fetched` while it computes.
void SumValues(const BlockView& block, PanelRange panels, DimRange dims, const float* weights,
               int query_count, double* sums, const PanelPart& fetched = {});

// Does what SumValues() does, for one query with float64 weights. Sums in float64 throughout, so
// nothing overflows. A weight of -infinity, the logit of a row that does not count, counts as 0.
// INT8 values are decoded to float32 first, which rounds them.
void SumValuesFloat64(const BlockView& block, PanelRange panels, DimRange dims,
                      const double* weights, double* sums);

// Adds weights[i] * value of row rows[i] to `sums`, for one row after the other, in float64
// throughout. rows[i] counts from the block's first row. There is one weight for each element of
// `rows`. `sums` has PaddedValueDim(dims.count) elements. Those for components past dims.count
// receive garbage.
void AddValues(const BlockView& block, DimRange dims, absl::Span<const std::uint16_t> rows,
               const double* weights, double* sums);

// Sets sums[i] to sums[i] * factor + others[i] * other_factor, for i in [0, count).
void CombineSums(double factor, const double* others, double other_factor, std::int64_t count,
                 double* sums);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_
