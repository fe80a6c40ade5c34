#include "core/kernels/score_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/score_rows.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/decode-inl.h"
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Numbers of queries and panels that are scored at once: as many independent sums as the registers
// hold. kFloat64Panels is for one query alone. With more queries, float64 takes one panel at a
// time.
#if HWY_TARGET <= HWY_AVX3
constexpr int kFloat32Queries = 4;
constexpr int kFloat32Panels = 4;
constexpr int kFloat64Queries = 8;
constexpr int kFloat64Panels = 4;
#else
constexpr int kFloat32Queries = kVecsPerPanel <= 2 ? 6 : 4;
constexpr int kFloat32Panels = 1;
constexpr int kFloat64Queries = 2;
constexpr int kFloat64Panels = 2;
#endif

// The most sums that wait in Float32Tile::Run(). A run has at most kRunDimsMax / 5 = 32 chains. So
// sums of 1, 2, 4, 8 and 16 chains may wait to be added. The sum of 32 chains is the run's own sum,
// and does not wait.
constexpr int kLevelsMax = 5;

// The float64 kernels widen queries and decode keys for this many components at a time.
constexpr std::int64_t kWideDims = 256;

// V is a float32 or a float64 vector.
template <Term kTerm, typename V>
HWY_INLINE V FirstTerm(V query, V key) {
  if constexpr (kTerm == Term::kProduct) {
    return hn::Mul(query, key);
  } else {
    const V difference = hn::Sub(query, key);
    return hn::Mul(difference, difference);
  }
}

template <Term kTerm, typename V>
HWY_INLINE V AddTerm(V query, V key, V sum) {
  if constexpr (kTerm == Term::kProduct) {
    return hn::MulAdd(query, key, sum);
  } else {
    const V difference = hn::Sub(query, key);
    return hn::MulAdd(difference, difference, sum);
  }
}

// Stores the float32 sums of the only run.
HWY_INLINE void Flush(FloatVec run, bool, float* HWY_RESTRICT sums) {
  hn::StoreU(run, FloatTag(), sums);
}

// Adds the float32 sums of a run to float64 sums. The first run overwrites the float64 sums.
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

// The keys of kPanels panels. In panel p, first[p] points to the first component of a run, and
// scales[p] to the keys' scales.
template <int kPanels>
struct KeyPanels {
  const std::byte* first[kPanels];
  const float* scales[kPanels];  // For INT8 keys. Null for other storage types.
  float* decoded[kPanels];       // Where a tile that keeps decoded keys writes those of the run.
};

// What a tile does with the keys that it decodes in registers.
enum class Decoded { kDropped, kKept };

// Scores kQueries queries against kPanels panels. The sums of a chain are in registers. Results are
// of type Sum: double, or float if there is only one run. Keys have the type kStorage.
template <Term kTerm, typename Sum, int kQueries, int kPanels,
          StorageType kStorage = StorageType::kFloat32, Decoded kDecoded = Decoded::kDropped>
class Float32Tile {
 public:
  // Scores one run of `dim_count` components, in chains of `chain_dims`. `keys` points to the first
  // component of the run. first_dim is its index among the components that queries[q] points to.
  static HWY_INLINE void Run(const KeyPanels<kPanels>& keys, std::int64_t dim_count,
                             std::int64_t chain_dims, const float* const* HWY_RESTRICT queries,
                             std::int64_t first_dim, Prefetcher& ahead, Sum* HWY_RESTRICT sums) {
    const float* run_queries[kQueries];
    for (int q = 0; q < kQueries; ++q) run_queries[q] = queries[q] + first_dim;
    // pending[i] is the sum of 2^i chains, if bit i of `chains` is set. It waits for the sum of the
    // next 2^i chains.
    alignas(64) float pending[kLevelsMax][kQueries * kVecs * kLanes];
    unsigned chains = 0;
    Sums total;
    for (std::int64_t dim = 0;; dim += chain_dims) {
      SumChain(keys, run_queries, dim, std::min(chain_dims, dim_count - dim), ahead, total);
      int level = 0;
      for (; (chains >> level & 1) != 0; ++level) Add(pending[level], total);
      ++chains;
      if (dim + chain_dims < dim_count) {
        Store(total, pending[level]);
        continue;
      }
      while (chains >> ++level != 0) {
        if ((chains >> level & 1) != 0) Add(pending[level], total);
      }
      break;
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        Flush(total[q][v], first_dim == 0, sums + q * kScratchStride + v * kLanes);
      }
    }
  }

 private:
  static constexpr int kVecs = kPanels * kVecsPerPanel;
  using Sums = FloatVec[kQueries][kVecs];

  // Adds the terms of one component to `sums`. If kFirst, the component is the first of a chain,
  // and its terms overwrite `sums`.
  template <bool kFirst>
  static HWY_INLINE void AddDim(const KeyPanels<kPanels>& keys,
                                const float* const* HWY_RESTRICT queries, std::int64_t dim,
                                Sums& sums) {
    const FloatTag d;
    FloatVec key[kVecs];
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      const int p = v / kVecsPerPanel;
      const std::int64_t lane = v % kVecsPerPanel * kLanes;
      const FloatVec scale =
          kStorage == StorageType::kInt8 ? hn::LoadU(d, keys.scales[p] + lane) : hn::Zero(d);
      const std::int64_t offset = (dim * kPanelRows + lane) * ElementBytes(kStorage);
      key[v] = DecodeScaled<kStorage>(keys.first[p] + offset, scale);
      if constexpr (kDecoded == Decoded::kKept) {
        hn::Store(key[v], d, keys.decoded[p] + dim * kPanelRows + lane);
      }
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      const FloatVec query = hn::Set(d, queries[q][dim]);
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        sums[q][v] =
            kFirst ? FirstTerm<kTerm>(query, key[v]) : AddTerm<kTerm>(query, key[v], sums[q][v]);
      }
    }
  }

  // Sets `sums` to the sums of `dim_count` terms, from component `dim` on.
  static HWY_INLINE void SumChain(const KeyPanels<kPanels>& keys,
                                  const float* const* HWY_RESTRICT queries, std::int64_t dim,
                                  std::int64_t dim_count, Prefetcher& ahead, Sums& sums) {
    ahead.Step();
    AddDim<true>(keys, queries, dim, sums);
    for (std::int64_t i = 1; i < dim_count; ++i) AddDim<false>(keys, queries, dim + i, sums);
  }

  static HWY_INLINE void Add(const float* HWY_RESTRICT pending, Sums& sums) {
    const FloatTag d;
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        sums[q][v] = hn::Add(hn::Load(d, pending + (q * kVecs + v) * kLanes), sums[q][v]);
      }
    }
  }

  static HWY_INLINE void Store(const Sums& sums, float* HWY_RESTRICT pending) {
    const FloatTag d;
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
        hn::Store(sums[q][v], d, pending + (q * kVecs + v) * kLanes);
      }
    }
  }
};

// Scores all queries over one run of components, as Float32Tile::Run does.
template <Term kTerm, typename Sum, int kPanels>
void RunOfQueries(const KeyPanels<kPanels>& keys, std::int64_t dim_count, std::int64_t chain_dims,
                  const float* const* queries, int query_count, std::int64_t first_dim,
                  Prefetcher& ahead, Sum* sums) {
  int q = 0;
  for (; q + kFloat32Queries <= query_count; q += kFloat32Queries) {
    Float32Tile<kTerm, Sum, kFloat32Queries, kPanels>::Run(
        keys, dim_count, chain_dims, queries + q, first_dim, ahead, sums + q * kScratchStride);
  }
  if constexpr (kFloat32Queries > 4) {
    for (; q + 4 <= query_count; q += 4) {
      Float32Tile<kTerm, Sum, 4, kPanels>::Run(keys, dim_count, chain_dims, queries + q, first_dim,
                                               ahead, sums + q * kScratchStride);
    }
  }
  for (; q + 2 <= query_count; q += 2) {
    Float32Tile<kTerm, Sum, 2, kPanels>::Run(keys, dim_count, chain_dims, queries + q, first_dim,
                                             ahead, sums + q * kScratchStride);
  }
  for (; q < query_count; ++q) {
    Float32Tile<kTerm, Sum, 1, kPanels>::Run(keys, dim_count, chain_dims, queries + q, first_dim,
                                             ahead, sums + q * kScratchStride);
  }
}

// Scores kQueries queries over one run of components, and decodes the keys in registers. Keeps the
// decoded keys if kDecoded says so. FLOAT32 keys are never kept: they can be read in place.
template <Term kTerm, typename Sum, int kQueries, Decoded kDecoded, int kPanels>
void RunAndDecode(StorageType storage, const KeyPanels<kPanels>& keys, std::int64_t dim_count,
                  std::int64_t chain_dims, const float* const* queries, std::int64_t first_dim,
                  Prefetcher& ahead, Sum* sums) {
  switch (storage) {
    case StorageType::kFloat32:
      return Float32Tile<kTerm, Sum, kQueries, kPanels>::Run(keys, dim_count, chain_dims, queries,
                                                             first_dim, ahead, sums);
    case StorageType::kBfloat16:
      return Float32Tile<kTerm, Sum, kQueries, kPanels, StorageType::kBfloat16, kDecoded>::Run(
          keys, dim_count, chain_dims, queries, first_dim, ahead, sums);
    case StorageType::kInt8:
      return Float32Tile<kTerm, Sum, kQueries, kPanels, StorageType::kInt8, kDecoded>::Run(
          keys, dim_count, chain_dims, queries, first_dim, ahead, sums);
  }
}

// Scores all queries against kPanels panels from `panel` on. Goes run by run, so that the keys of a
// run stay in the nearest caches. For several queries, decodes these keys once for all. The first
// queries decode them, if they fill a tile: their multiplications hide the time that this takes.
template <Term kTerm, typename Sum, int kPanels>
void Float32Panels(const Float32Sums& how, const BlockView& block, std::int64_t panel,
                   DimRange dims, const float* const* queries, int query_count, Prefetcher& ahead,
                   Sum* sums) {
  const StorageType storage = block.shape.storage;
  alignas(64) float decoded[kPanels][kRunDimsMax * kPanelRows];
  sums += panel * kPanelRows;
  for (std::int64_t run = 0; run < dims.count; run += how.run_dims) {
    const std::int64_t first = dims.begin + run;
    const std::int64_t count = std::min(how.run_dims, dims.count - run);
    KeyPanels<kPanels> keys;
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* at = block.panel(panel + p);
      keys.first[p] = at + block.shape.key_offset(0, first);
      keys.scales[p] = KeyScalesOf(block.shape, at);
      keys.decoded[p] = decoded[p];
    }
    if (query_count == 1) {
      RunAndDecode<kTerm, Sum, 1, Decoded::kDropped>(storage, keys, count, how.chain_dims, queries,
                                                     run, ahead, sums);
      continue;
    }
    int scored = 0;
    if (storage != StorageType::kFloat32 && query_count >= kFloat32Queries) {
      RunAndDecode<kTerm, Sum, kFloat32Queries, Decoded::kKept>(
          storage, keys, count, how.chain_dims, queries, run, ahead, sums);
      scored = kFloat32Queries;
      for (int p = 0; p < kPanels; ++p) keys.first[p] = reinterpret_cast<std::byte*>(decoded[p]);
    } else {
      for (int p = 0; p < kPanels; ++p) {
        keys.first[p] = reinterpret_cast<const std::byte*>(DecodedKeys(
            block.shape, block.panel(panel + p), {.begin = first, .count = count}, decoded[p]));
      }
    }
    RunOfQueries<kTerm, Sum>(keys, count, how.chain_dims, queries + scored, query_count - scored,
                             run, ahead, sums + scored * kScratchStride);
  }
}

template <Term kTerm, typename Sum>
void ScoreFloat32(const Float32Sums& how, const BlockView& block, PanelRange panels, DimRange dims,
                  const float* const* queries, int query_count, const PanelPart& fetched,
                  Sum* sums) {
  const std::int64_t chains = (dims.count + how.chain_dims - 1) / how.chain_dims;
  const int query_groups = (query_count + kFloat32Queries - 1) / kFloat32Queries;
  const std::int64_t panel_count = panels.end - panels.begin;
  const std::int64_t panel_groups = panel_count / kFloat32Panels + panel_count % kFloat32Panels;
  Prefetcher ahead(fetched, panel_groups * chains * query_groups);
  std::int64_t panel = panels.begin;
  for (; panel + kFloat32Panels <= panels.end; panel += kFloat32Panels) {
    Float32Panels<kTerm, Sum, kFloat32Panels>(how, block, panel, dims, queries, query_count, ahead,
                                              sums);
  }
  for (; panel < panels.end; ++panel) {
    Float32Panels<kTerm, Sum, 1>(how, block, panel, dims, queries, query_count, ahead, sums);
  }
}

// Scores kQueries queries against kPanels neighbouring panels in float64. Adds the terms of
// `dim_count` components to `sums`. keys[p] points to the first of these components in panel p.
template <Term kTerm, int kQueries, int kPanels>
HWY_INLINE void Float64Tile(const float* const* HWY_RESTRICT keys, std::int64_t dim_count,
                            const double (*HWY_RESTRICT queries)[kWideDims],
                            double* HWY_RESTRICT sums) {
  const DoubleTag dd;
  const HalfFloatTag dh;
  constexpr int kPanelVecs = static_cast<int>(kPanelRows / kHalfLanes);
  constexpr int kVecs = kPanels * kPanelVecs;
  DoubleVec acc[kQueries][kVecs];
  HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      acc[q][v] = hn::LoadU(dd, sums + q * kScratchStride + v * kHalfLanes);
    }
  }
  for (std::int64_t dim = 0; dim < dim_count; ++dim) {
    DoubleVec key[kVecs];
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      const std::int64_t lane = v % kPanelVecs * static_cast<std::int64_t>(kHalfLanes);
      key[v] = hn::PromoteTo(dd, hn::LoadU(dh, keys[v / kPanelVecs] + dim * kPanelRows + lane));
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
  // An addition waits for the previous addition to the same sum. The sums of one query and one
  // panel are too few to keep the CPU busy meanwhile. So one query alone takes several panels at a
  // time.
  constexpr int kPanels = kQueries == 1 ? kFloat64Panels : 1;
  double wide[kQueries][kWideDims];
  alignas(64) float decoded[kPanels][kWideDims * kPanelRows];
  const float* keys[kPanels];
  for (std::int64_t begin = 0; begin < dims.count; begin += kWideDims) {
    const std::int64_t count = std::min(kWideDims, dims.count - begin);
    for (int q = 0; q < kQueries; ++q) std::copy_n(queries[q] + begin, count, wide[q]);
    const auto decode = [&](std::int64_t panel, int place) {
      keys[place] = DecodedKeys(block.shape, block.panel(panel),
                                {.begin = dims.begin + begin, .count = count}, decoded[place]);
    };
    std::int64_t panel = panels.begin;
    for (; panel + kPanels <= panels.end; panel += kPanels) {
      for (int p = 0; p < kPanels; ++p) decode(panel + p, p);
      Float64Tile<kTerm, kQueries, kPanels>(keys, count, wide, sums + panel * kPanelRows);
    }
    for (; panel < panels.end; ++panel) {
      decode(panel, 0);
      Float64Tile<kTerm, kQueries, 1>(keys, count, wide, sums + panel * kPanelRows);
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

// Adds the squares of the components of 16 keys to `squares`.
HWY_INLINE void AddSquares(const float* HWY_RESTRICT keys, std::int64_t dim_count,
                           double* HWY_RESTRICT squares) {
  const DoubleTag dd;
  const HalfFloatTag dh;
  constexpr int kVecs = static_cast<int>(kPanelRows / kHalfLanes);
  DoubleVec sums[kVecs];
  HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
    sums[v] = hn::LoadU(dd, squares + v * kHalfLanes);
  }
  for (std::int64_t dim = 0; dim < dim_count; ++dim) {
    HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
      const DoubleVec key =
          hn::PromoteTo(dd, hn::LoadU(dh, keys + dim * kPanelRows + v * kHalfLanes));
      sums[v] = hn::MulAdd(key, key, sums[v]);
    }
  }
  HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
    hn::StoreU(sums[v], dd, squares + v * kHalfLanes);
  }
}

void ScoreRowsOneTarget(Term term, const Float32Sums& how, const BlockView& block,
                        PanelRange panels, DimRange dims, const float* const* queries,
                        int query_count, const PanelPart& fetched, double* sums) {
  (term == Term::kProduct
       ? ScoreFloat32<Term::kProduct, double>
       : ScoreFloat32<Term::kSquaredDifference, double>)(how, block, panels, dims, queries,
                                                         query_count, fetched, sums);
}

void ScoreRowsFloat32OneTarget(Term term, const Float32Sums& how, const BlockView& block,
                               PanelRange panels, DimRange dims, const float* const* queries,
                               int query_count, const PanelPart& fetched, float* sums) {
  (term == Term::kProduct ? ScoreFloat32<Term::kProduct, float>
                          : ScoreFloat32<Term::kSquaredDifference, float>)(how, block, panels, dims,
                                                                           queries, query_count,
                                                                           fetched, sums);
}

void ScoreRowsFloat64OneTarget(Term term, const BlockView& block, PanelRange panels, DimRange dims,
                               const float* const* queries, int query_count, double* sums) {
  (term == Term::kProduct
       ? ScoreFloat64<Term::kProduct>
       : ScoreFloat64<Term::kSquaredDifference>)(block, panels, dims, queries, query_count, sums);
}

void KeyNormsOneTarget(const BlockView& block, PanelRange panels, DimRange dims, double* norms) {
  const DoubleTag dd;
  alignas(64) float decoded[kWideDims * kPanelRows];
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    double* out = norms + panel * kPanelRows;
    std::fill_n(out, kPanelRows, 0.0);
    for (std::int64_t begin = 0; begin < dims.count; begin += kWideDims) {
      const std::int64_t count = std::min(kWideDims, dims.count - begin);
      AddSquares(DecodedKeys(block.shape, block.panel(panel),
                             {.begin = dims.begin + begin, .count = count}, decoded),
                 count, out);
    }
    for (std::size_t r = 0; r < kPanelRows; r += kHalfLanes) {
      hn::StoreU(hn::Sqrt(hn::LoadU(dd, out + r)), dd, out + r);
    }
  }
}

bool FusesMultiplyAddsOneTarget() { return HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64 != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(ScoreRowsOneTarget);
HWY_EXPORT(ScoreRowsFloat32OneTarget);
HWY_EXPORT(ScoreRowsFloat64OneTarget);
HWY_EXPORT(KeyNormsOneTarget);
HWY_EXPORT(FusesMultiplyAddsOneTarget);

void ScoreRows(Term term, const Float32Sums& how, const BlockView& block, PanelRange panels,
               DimRange dims, const float* const* queries, int query_count, double* sums,
               const PanelPart& fetched) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsOneTarget)
  (term, how, block, panels, dims, queries, query_count, fetched, sums);
}

void ScoreRowsFloat32(Term term, const Float32Sums& how, const BlockView& block, PanelRange panels,
                      DimRange dims, const float* const* queries, int query_count, float* sums,
                      const PanelPart& fetched) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsFloat32OneTarget)
  (term, how, block, panels, dims, queries, query_count, fetched, sums);
}

void ScoreRowsFloat64(Term term, const BlockView& block, PanelRange panels, DimRange dims,
                      const float* const* queries, int query_count, double* sums) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsFloat64OneTarget)
  (term, block, panels, dims, queries, query_count, sums);
}

bool FusesMultiplyAdds() { return HWY_DYNAMIC_DISPATCH(FusesMultiplyAddsOneTarget)(); }

void KeyNorms(const BlockView& block, PanelRange panels, DimRange dims, double* norms) {
  HWY_DYNAMIC_DISPATCH(KeyNormsOneTarget)(block, panels, dims, norms);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
