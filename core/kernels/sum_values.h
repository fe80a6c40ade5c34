#ifndef SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_
#define SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_

#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// Rows whose weighted values are added up in float32 before float64 takes over.
inline constexpr std::int64_t kFloat32RunRows = 128;

// Distance between queries in `sums` below: whole vectors, so that the last one needs no mask.
constexpr std::int64_t PaddedValueDim(std::int64_t dim_count) {
  return (dim_count + kPanelRows - 1) / kPanelRows * kPanelRows;
}

// Adds sum over the rows r of `panels` of weights[q * kScratchStride + r] * value of row r, over
// the components `dims`, to sums[q * PaddedValueDim(dims.count) + i], for query_count queries in
// [1, kTileQueries]. Components past dims.count receive garbage.
//
// Rows are added in order, in float32 over runs of kFloat32RunRows rows that start at multiples of
// it, and in float64 across runs, whatever the vector width and query_count. A row of weight 0
// changes no bit. The caller sees to it that a run's sum stays in float32's range, and with INT8
// that weights times scales that count do: those are formed first, rounded once. `fetched`, if any,
// is fetched meanwhile.
void SumValues(const BlockView& block, PanelRange panels, DimRange dims, const float* weights,
               int query_count, double* sums, const PanelPart& fetched = {});

// The same for one query, with float64 weights and in float64 throughout: nothing overflows.
// Weights of -inf count as 0. Writes dims.count components.
void SumValuesFloat64(const BlockView& block, PanelRange panels, DimRange dims,
                      const double* weights, double* sums);

// sums[i] = sums[i] * factor + others[i] * other_factor for i in [0, count).
void CombineSums(double factor, const double* others, double other_factor, std::int64_t count,
                 double* sums);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_SUM_VALUES_H_
