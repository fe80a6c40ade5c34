#include "core/kernels/score_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/score_rows.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Comes first.
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// The shape of the register tile: as many independent sums as the registers hold.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRegisterQueries = 8;
constexpr int kRegisterPanels = 3;
constexpr int kLonePanels = 4;  // For one query.
#else
constexpr int kRegisterQueries = 4;
constexpr int kRegisterPanels = 1;
constexpr int kLonePanels = 2;
#endif

template <Term kTerm>
HWY_INLINE FloatVec AddTerm(FloatVec query, FloatVec key, FloatVec sum) {
  if constexpr (kTerm == Term::kProduct) {
    return hn::MulAdd(query, key, sum);
  } else {
    const FloatVec difference = hn::Sub(query, key);
    return hn::MulAdd(difference, difference, sum);
  }
}

// Adds (or, for the first run, stores) float32 sums to float64 ones.
HWY_INLINE void Flush(FloatVec run, bool first_run, double* HWY_RESTRICT sums) {
  const DoubleTag dd;
  DoubleVec low = hn::PromoteTo(dd, hn::LowerHalf(run));
  DoubleVec high = hn::PromoteTo(dd, hn::UpperHalf(HalfFloatTag(), run));
  if (!first_run) {
    low = hn::Add(hn::LoadU(dd, sums), low);
    high = hn::Add(hn::LoadU(dd, sums + kHalfLanes), high);
  }
  hn::StoreU(low, dd, sums);
  hn::StoreU(high, dd, sums + kHalfLanes);
}

// kQueries queries against kPanels panels, all sums in registers.
template <Term kTerm, int kQueries, int kPanels>
HWY_INLINE void Float32Tile(const float* const* HWY_RESTRICT keys, std::int64_t dim_count,
                            const float* const* HWY_RESTRICT queries, double* HWY_RESTRICT sums) {
  const FloatTag d;
  constexpr int kVecs = kPanels * kVecsPerPanel;
  for (std::int64_t run = 0; run < dim_count; run += kFloat32RunDims) {
    const std::int64_t run_end = std::min(run + kFloat32RunDims, dim_count);
    FloatVec acc[kQueries][kVecs];
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) acc[q][v] = hn::Zero(d);
    }
    for (std::int64_t dim = run; dim < run_end; ++dim) {
      FloatVec key[kVecs];
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        key[v] =
            hn::LoadU(d, keys[v / kVecsPerPanel] + dim * kPanelRows + (v % kVecsPerPanel) * kLanes);
      }
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        const FloatVec query = hn::Set(d, queries[q][dim]);
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          acc[q][v] = AddTerm<kTerm>(query, key[v], acc[q][v]);
        }
      }
    }
    for (int q = 0; q < kQueries; ++q) {
      for (int v = 0; v < kVecs; ++v) {
        Flush(acc[q][v], run == 0, sums + q * kScratchStride + v * kLanes);
      }
    }
  }
}

template <Term kTerm, int kQueries, int kPanels>
HWY_INLINE std::int64_t Float32Panels(const BlockView& block, std::int64_t panel, std::int64_t end,
                                      DimRange dims, const float* const* queries, double* sums,
                                      std::int64_t first) {
  for (; panel + kPanels <= end; panel += kPanels) {
    const float* keys[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      keys[p] = block.panel(panel + p) + block.shape.key_offset(0, dims.begin);
    }
    Float32Tile<kTerm, kQueries, kPanels>(keys, dims.count, queries,
                                          sums + (panel - first) * kPanelRows);
  }
  return panel;
}

template <Term kTerm, int kQueries>
void Float32Queries(const BlockView& block, PanelRange panels, DimRange dims,
                    const float* const* queries, double* sums) {
  constexpr int kPanels = kQueries == 1 ? kLonePanels : kRegisterPanels;
  double* first = sums + panels.begin * kPanelRows;
  std::int64_t panel = Float32Panels<kTerm, kQueries, kPanels>(block, panels.begin, panels.end,
                                                               dims, queries, first, panels.begin);
  if constexpr (kPanels > 1) {
    Float32Panels<kTerm, kQueries, 1>(block, panel, panels.end, dims, queries, first, panels.begin);
  }
}

template <Term kTerm>
void ScoreFloat32(const BlockView& block, PanelRange panels, DimRange dims,
                  const float* const* queries, int query_count, double* sums) {
  int q = 0;
  for (; q + kRegisterQueries <= query_count; q += kRegisterQueries) {
    Float32Queries<kTerm, kRegisterQueries>(block, panels, dims, queries + q,
                                            sums + q * kScratchStride);
  }
  if constexpr (kRegisterQueries > 4) {
    for (; q + 4 <= query_count; q += 4) {
      Float32Queries<kTerm, 4>(block, panels, dims, queries + q, sums + q * kScratchStride);
    }
  }
  for (; q + 2 <= query_count; q += 2) {
    Float32Queries<kTerm, 2>(block, panels, dims, queries + q, sums + q * kScratchStride);
  }
  for (; q < query_count; ++q) {
    Float32Queries<kTerm, 1>(block, panels, dims, queries + q, sums + q * kScratchStride);
  }
}

// One panel, one query (or, without a query, the keys against themselves), in float64.
template <Term kTerm>
HWY_INLINE void Float64Panel(const float* HWY_RESTRICT keys, std::int64_t dim_count,
                             const float* HWY_RESTRICT query, double* HWY_RESTRICT sums) {
  const DoubleTag dd;
  const HalfFloatTag dh;
  constexpr int kVecs = static_cast<int>(kPanelRows / kHalfLanes);
  DoubleVec acc[kVecs];
  HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) acc[v] = hn::Zero(dd);
  for (std::int64_t dim = 0; dim < dim_count; ++dim) {
    const DoubleVec q = hn::Set(dd, query == nullptr ? 0.0 : static_cast<double>(query[dim]));
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      const DoubleVec key =
          hn::PromoteTo(dd, hn::LoadU(dh, keys + dim * kPanelRows + v * kHalfLanes));
      if constexpr (kTerm == Term::kProduct) {
        acc[v] = hn::MulAdd(query == nullptr ? key : q, key, acc[v]);
      } else {
        const DoubleVec difference = hn::Sub(q, key);
        acc[v] = hn::MulAdd(difference, difference, acc[v]);
      }
    }
  }
  HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) { hn::StoreU(acc[v], dd, sums + v * kHalfLanes); }
}

template <Term kTerm>
void ScoreFloat64(const BlockView& block, PanelRange panels, DimRange dims,
                  const float* const* queries, int query_count, double* sums) {
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const float* keys = block.panel(panel) + block.shape.key_offset(0, dims.begin);
    for (int q = 0; q < query_count; ++q) {
      Float64Panel<kTerm>(keys, dims.count, queries[q],
                          sums + q * kScratchStride + panel * kPanelRows);
    }
  }
}

void ScoreRowsOneTarget(Term term, SumIn sum_in, const BlockView& block, PanelRange panels,
                        DimRange dims, const float* const* queries, int query_count, double* sums) {
  const bool product = term == Term::kProduct;
  if (sum_in == SumIn::kFloat32Runs) {
    (product
         ? ScoreFloat32<Term::kProduct>
         : ScoreFloat32<Term::kSquaredDifference>)(block, panels, dims, queries, query_count, sums);
  } else {
    (product
         ? ScoreFloat64<Term::kProduct>
         : ScoreFloat64<Term::kSquaredDifference>)(block, panels, dims, queries, query_count, sums);
  }
}

void KeyNormsOneTarget(const BlockView& block, PanelRange panels, DimRange dims, double* norms) {
  const DoubleTag dd;
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    double* out = norms + panel * kPanelRows;
    Float64Panel<Term::kProduct>(block.panel(panel) + block.shape.key_offset(0, dims.begin),
                                 dims.count, nullptr, out);
    for (std::size_t r = 0; r < kPanelRows; r += kHalfLanes) {
      hn::StoreU(hn::Sqrt(hn::LoadU(dd, out + r)), dd, out + r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(ScoreRowsOneTarget);
HWY_EXPORT(KeyNormsOneTarget);

void ScoreRows(Term term, SumIn sum_in, const BlockView& block, PanelRange panels, DimRange dims,
               const float* const* queries, int query_count, double* sums) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsOneTarget)
  (term, sum_in, block, panels, dims, queries, query_count, sums);
}

void KeyNorms(const BlockView& block, PanelRange panels, DimRange dims, double* norms) {
  HWY_DYNAMIC_DISPATCH(KeyNormsOneTarget)(block, panels, dims, norms);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
