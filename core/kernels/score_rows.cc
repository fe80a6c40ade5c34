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

// The shapes of the register tiles: as many independent sums as the registers hold, two a sum in
// float32.
#if HWY_TARGET <= HWY_AVX3
constexpr int kFloat32Queries = 4;
constexpr int kFloat32Panels = 3;
constexpr int kFloat64Queries = 8;
constexpr int kLonePanels = 4;  // For one query.
#else
constexpr int kFloat32Queries = 2;
constexpr int kFloat32Panels = 1;
constexpr int kFloat64Queries = 2;
constexpr int kLonePanels = 2;
#endif

// Queries are widened to float64 this many components at a time.
constexpr std::int64_t kWideDims = 256;

// Float32 or float64.
template <Term kTerm, typename V>
HWY_INLINE V AddTerm(V query, V key, V sum) {
  if constexpr (kTerm == Term::kProduct) {
    return hn::MulAdd(query, key, sum);
  } else {
    const V difference = hn::Sub(query, key);
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
    FloatVec total[kQueries][kVecs];
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) total[q][v] = hn::Zero(d);
    }
    for (std::int64_t chain = run; chain < run_end; chain += kFloat32ChainDims) {
      const std::int64_t chain_end = std::min(chain + kFloat32ChainDims, run_end);
      FloatVec acc[kQueries][kVecs];
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) acc[q][v] = hn::Zero(d);
      }
      for (std::int64_t dim = chain; dim < chain_end; ++dim) {
        FloatVec key[kVecs];
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          key[v] = hn::LoadU(
              d, keys[v / kVecsPerPanel] + dim * kPanelRows + (v % kVecsPerPanel) * kLanes);
        }
        HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
          const FloatVec query = hn::Set(d, queries[q][dim]);
          HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
            acc[q][v] = AddTerm<kTerm>(query, key[v], acc[q][v]);
          }
        }
      }
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          total[q][v] = hn::Add(total[q][v], acc[q][v]);
        }
      }
    }
    for (int q = 0; q < kQueries; ++q) {
      for (int v = 0; v < kVecs; ++v) {
        Flush(total[q][v], run == 0, sums + q * kScratchStride + v * kLanes);
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
  constexpr int kPanels = kQueries == 1 ? kLonePanels : kFloat32Panels;
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
  for (; q + kFloat32Queries <= query_count; q += kFloat32Queries) {
    Float32Queries<kTerm, kFloat32Queries>(block, panels, dims, queries + q,
                                           sums + q * kScratchStride);
  }
  if constexpr (kFloat32Queries > 2) {
    for (; q + 2 <= query_count; q += 2) {
      Float32Queries<kTerm, 2>(block, panels, dims, queries + q, sums + q * kScratchStride);
    }
  }
  for (; q < query_count; ++q) {
    Float32Queries<kTerm, 1>(block, panels, dims, queries + q, sums + q * kScratchStride);
  }
}

// kQueries queries against one panel, in float64: adds the terms of `dim_count` components to sums.
template <Term kTerm, int kQueries>
HWY_INLINE void Float64Tile(const float* HWY_RESTRICT keys, std::int64_t dim_count,
                            const double (*HWY_RESTRICT queries)[kWideDims],
                            double* HWY_RESTRICT sums) {
  const DoubleTag dd;
  const HalfFloatTag dh;
  constexpr int kVecs = static_cast<int>(kPanelRows / kHalfLanes);
  DoubleVec acc[kQueries][kVecs];
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      acc[q][v] = hn::LoadU(dd, sums + q * kScratchStride + v * kHalfLanes);
    }
  }
  for (std::int64_t dim = 0; dim < dim_count; ++dim) {
    DoubleVec key[kVecs];
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      key[v] = hn::PromoteTo(dd, hn::LoadU(dh, keys + dim * kPanelRows + v * kHalfLanes));
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      const DoubleVec query = hn::Set(dd, queries[q][dim]);
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        acc[q][v] = AddTerm<kTerm>(query, key[v], acc[q][v]);
      }
    }
  }
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      hn::StoreU(acc[q][v], dd, sums + q * kScratchStride + v * kHalfLanes);
    }
  }
}

template <Term kTerm, int kQueries>
void Float64Queries(const BlockView& block, PanelRange panels, DimRange dims,
                    const float* const* queries, double* sums) {
  for (int q = 0; q < kQueries; ++q) {
    std::fill(sums + q * kScratchStride + panels.begin * kPanelRows,
              sums + q * kScratchStride + panels.end * kPanelRows, 0.0);
  }
  double wide[kQueries][kWideDims];
  for (std::int64_t begin = 0; begin < dims.count; begin += kWideDims) {
    const std::int64_t count = std::min(kWideDims, dims.count - begin);
    for (int q = 0; q < kQueries; ++q) std::copy_n(queries[q] + begin, count, wide[q]);
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      Float64Tile<kTerm, kQueries>(
          block.panel(panel) + block.shape.key_offset(0, dims.begin + begin), count, wide,
          sums + panel * kPanelRows);
    }
  }
}

template <Term kTerm>
void ScoreFloat64(const BlockView& block, PanelRange panels, DimRange dims,
                  const float* const* queries, int query_count, double* sums) {
  int q = 0;
  for (; q + kFloat64Queries <= query_count; q += kFloat64Queries) {
    Float64Queries<kTerm, kFloat64Queries>(block, panels, dims, queries + q,
                                           sums + q * kScratchStride);
  }
  if constexpr (kFloat64Queries > 2) {
    for (; q + 2 <= query_count; q += 2) {
      Float64Queries<kTerm, 2>(block, panels, dims, queries + q, sums + q * kScratchStride);
    }
  }
  for (; q < query_count; ++q) {
    Float64Queries<kTerm, 1>(block, panels, dims, queries + q, sums + q * kScratchStride);
  }
}

// The squares of the components of 16 keys, summed in float64.
HWY_INLINE void SquareNorms(const float* HWY_RESTRICT keys, std::int64_t dim_count,
                            double* HWY_RESTRICT squares) {
  const DoubleTag dd;
  const HalfFloatTag dh;
  for (std::size_t r = 0; r < kPanelRows; r += kHalfLanes) {
    DoubleVec sum = hn::Zero(dd);
    for (std::int64_t dim = 0; dim < dim_count; ++dim) {
      const DoubleVec key = hn::PromoteTo(dd, hn::LoadU(dh, keys + dim * kPanelRows + r));
      sum = hn::MulAdd(key, key, sum);
    }
    hn::StoreU(sum, dd, squares + r);
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
    SquareNorms(block.panel(panel) + block.shape.key_offset(0, dims.begin), dims.count, out);
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
