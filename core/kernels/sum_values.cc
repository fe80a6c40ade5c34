#include "core/kernels/sum_values.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/sum_values.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/decode-inl.h"
#include "core/kernels/vectors-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Numbers of queries, and of vectors of value components, whose sums are in registers together.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRegisterQueries = 8;
constexpr int kRegisterVecs = 3;
#else
constexpr int kRegisterQueries = 6;
constexpr int kRegisterVecs = 2;
#endif
constexpr int kLoneVecs = 8;  // Vectors whose sums are in registers for a single query.

// A column is a range of components of all values, and is summed up before the next column. For
// one query alone, a column has kLoneColumnDims components, else kColumnDims. The last column may
// have fewer. All others are whole numbers of strips (AddStrips), for vectors of any width.
constexpr std::int64_t kLoneColumnDims = 256;
constexpr std::int64_t kColumnDims = 192;
// Bytes of a piece: the rows of a column that are summed up for all queries of a tile before the
// next rows. With narrow vectors, a piece must stay in the first-level cache. The widest vectors do
// 24 multiply-adds for every 3 loads, which the second-level cache keeps up with. There, small
// pieces cost more by their waiting sums than they save: 0.81 of the FMA peak with 16 KiB, 0.90
// with 64 KiB (Emerald Rapids, 16 queries, 128 components).
#if HWY_TARGET <= HWY_AVX3
constexpr std::int64_t kPieceBytes = 64 << 10;
#else
constexpr std::int64_t kPieceBytes = 16 << 10;
#endif

// Rows from one step of the prefetcher to the next.
constexpr std::int64_t kPrefetchRows = 4;

static_assert(kLoneColumnDims <= kTileQueries * kColumnDims, "ColumnSums keeps sums of both");

constexpr std::int64_t kRunPanels = kFloat32RunRows / kPanelRows;

// A range of the panels of a run that is summed up for all queries before the next range. It may be
// the whole run.
struct Piece {
  PanelRange panels;
  bool is_first, is_last;  // Whether it is the first, or the last, piece of its run.
};

// Sums up a column of components, run by run. Between two pieces of a run, the run's float32 sums
// wait in waiting_. So the order of additions does not depend on the size of the pieces.
class ColumnSums {
 public:
  // The column consists of the components `dims`. sums[q * stride] belongs to component dims.begin
  // and query q.
  ColumnSums(const BlockView& block, DimRange dims, const float* weights, int query_count,
             std::int64_t stride, Prefetcher& ahead, double* sums)
      : block_(block),
        dims_(dims),
        vec_count_((dims.count + kLanes - 1) / kLanes),
        weights_(weights),
        query_count_(query_count),
        stride_(stride),
        ahead_(ahead),
        sums_(sums) {}

  // Adds all panels of a run.
  template <StorageType kStorage>
  void AddRun(PanelRange panels) {
    const std::int64_t panel_bytes = dims_.count * kPanelRows * ElementBytes(kStorage);
    const std::int64_t step = std::max<std::int64_t>(kPieceBytes / panel_bytes, 1);
    for (std::int64_t panel = panels.begin; panel < panels.end; panel += step) {
      const std::int64_t end = std::min(panel + step, panels.end);
      AddPiece<kStorage>({.panels = {.begin = panel, .end = end},
                          .is_first = panel == panels.begin,
                          .is_last = end == panels.end});
    }
  }

 private:
  template <StorageType kStorage>
  void AddPiece(const Piece& piece) {
    std::int64_t vec = 0;
    if (query_count_ == 1) {
      vec = AddStrips<kStorage, kLoneVecs>(piece, vec);
      vec = AddStrips<kStorage, 4>(piece, vec);
    }
    if constexpr (kRegisterVecs > 2) vec = AddStrips<kStorage, kRegisterVecs>(piece, vec);
    vec = AddStrips<kStorage, 2>(piece, vec);
    AddStrips<kStorage, 1>(piece, vec);
  }

  // Adds kVecs vectors at a time, from vector `vec` on, for all queries. Returns the first vector
  // that is left.
  template <StorageType kStorage, int kVecs>
  std::int64_t AddStrips(const Piece& piece, std::int64_t vec) {
    for (; vec + kVecs <= vec_count_; vec += kVecs) {
      int query = 0;
      if constexpr (kVecs <= kRegisterVecs) {
        query = AddTiles<kStorage, kRegisterQueries, kVecs>(piece, vec, query);
        query = AddTiles<kStorage, 4, kVecs>(piece, vec, query);
        query = AddTiles<kStorage, 2, kVecs>(piece, vec, query);
      }
      AddTiles<kStorage, 1, kVecs>(piece, vec, query);
    }
    return vec;
  }

  // Adds kVecs vectors for kQueries queries at a time, from `query` on. Returns the first query
  // that is left.
  template <StorageType kStorage, int kQueries, int kVecs>
  HWY_INLINE int AddTiles(const Piece& piece, std::int64_t vec, int query) {
    for (; query + kQueries <= query_count_; query += kQueries) {
      AddTile<kStorage, kQueries, kVecs>(piece, vec, query);
    }
    return query;
  }

  template <StorageType kStorage, int kQueries, int kVecs>
  void AddTile(const Piece& piece, std::int64_t vec, int query) {
    const FloatTag d;
    constexpr std::int64_t kBytes = ElementBytes(kStorage);
    const std::int64_t value_bytes = block_.shape.value_dim * kBytes;
    const std::int64_t first_byte = (dims_.begin + vec * kLanes) * kBytes;
    float* HWY_RESTRICT waiting = waiting_ + query * kColumnDims + vec * kLanes;
    FloatVec acc[kQueries][kVecs];
    if (piece.is_first) {
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) acc[q][v] = hn::Zero(d);
      }
    } else {
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          acc[q][v] = hn::Load(d, waiting + q * kColumnDims + v * kLanes);
        }
      }
    }
    for (std::int64_t panel = piece.panels.begin; panel < piece.panels.end; ++panel) {
      const std::byte* HWY_RESTRICT value = block_.panel(panel) + first_byte;
      const float* HWY_RESTRICT weight = weights_ + query * kScratchStride + panel * kPanelRows;
      HWY_UNROLL(16)
      for (std::int64_t row = 0; row < kPanelRows; ++row, value += value_bytes, ++weight) {
        if (row % kPrefetchRows == 0) ahead_.Step();
        FloatVec component[kVecs];
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          component[v] = Decode<kStorage>(value + v * kLanes * kBytes);
        }
        HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
          const FloatVec w = hn::Set(d, weight[q * kScratchStride]);
          HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
            acc[q][v] = hn::MulAdd(w, component[v], acc[q][v]);
          }
        }
      }
    }
    if (piece.is_last) {
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          AddTo(sums_ + (query + q) * stride_ + (vec + v) * kLanes, acc[q][v]);
        }
      }
    } else {
      HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16) for (int v = 0; v < kVecs; ++v) {
          hn::Store(acc[q][v], d, waiting + q * kColumnDims + v * kLanes);
        }
      }
    }
  }

  static HWY_INLINE void AddTo(double* HWY_RESTRICT sums, FloatVec run) {
    const DoubleTag dd;
    const auto low = hn::PromoteTo(dd, hn::LowerHalf(run));
    const auto high = hn::PromoteTo(dd, hn::UpperHalf(HalfFloatTag(), run));
    hn::StoreU(hn::Add(hn::LoadU(dd, sums), low), dd, sums);
    hn::StoreU(hn::Add(hn::LoadU(dd, sums + kHalfLanes), high), dd, sums + kHalfLanes);
  }

  const BlockView& block_;
  const DimRange dims_;
  const std::int64_t vec_count_;
  const float* const weights_;
  const int query_count_;
  const std::int64_t stride_;
  Prefetcher& ahead_;
  double* const sums_;
  alignas(64) float waiting_[kTileQueries * kColumnDims];  // Float32 sums of a run's pieces so far.
};

template <StorageType kStorage>
void SumValuesAs(const BlockView& block, PanelRange panels, DimRange dims, const float* weights,
                 int query_count, const PanelPart& fetched, double* sums) {
  const std::int64_t strip_dims = (query_count == 1 ? kLoneVecs : kRegisterVecs) * kLanes;
  const std::int64_t strips = (dims.count + strip_dims - 1) / strip_dims;
  const int query_groups = (query_count + kRegisterQueries - 1) / kRegisterQueries;
  Prefetcher ahead(
      fetched, (panels.end - panels.begin) * (kPanelRows / kPrefetchRows) * strips * query_groups);
  const std::int64_t column_dims = query_count == 1 ? kLoneColumnDims : kColumnDims;
  for (std::int64_t dim = 0; dim < dims.count; dim += column_dims) {
    ColumnSums column(block,
                      {.begin = dims.begin + dim, .count = std::min(column_dims, dims.count - dim)},
                      weights, query_count, PaddedValueDim(dims.count), ahead, sums + dim);
    for (std::int64_t panel = panels.begin; panel < panels.end;) {
      const std::int64_t run_end = std::min((panel / kRunPanels + 1) * kRunPanels, panels.end);
      column.AddRun<kStorage>({.begin = panel, .end = run_end});
      panel = run_end;
    }
  }
}

// Sums INT8 values. Multiplies the weights by the rows' scales first, and sums the values' integers
// with the scaled weights.
void SumInt8Values(const BlockView& block, PanelRange panels, DimRange dims, const float* weights,
                   int query_count, const PanelPart& fetched, double* sums) {
  const FloatTag d;
  float scaled[kTileQueries * kScratchStride];
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const auto* scales =
        reinterpret_cast<const float*>(block.panel(panel) + block.shape.value_scale_offset(0));
    for (std::size_t lane = 0; lane < kPanelRows; lane += kLanes) {
      const FloatVec scale = hn::LoadU(d, scales + lane);
      const std::size_t row = static_cast<std::size_t>(panel * kPanelRows) + lane;
      for (std::size_t at = row; at < query_count * kScratchStride; at += kScratchStride) {
        hn::StoreU(hn::Mul(hn::LoadU(d, weights + at), scale), d, scaled + at);
      }
    }
  }
  SumValuesAs<StorageType::kInt8>(block, panels, dims, scaled, query_count, fetched, sums);
}

void SumValuesOneTarget(const BlockView& block, PanelRange panels, DimRange dims,
                        const float* weights, int query_count, const PanelPart& fetched,
                        double* sums) {
  switch (block.shape.storage) {
    case StorageType::kFloat32:
      return SumValuesAs<StorageType::kFloat32>(block, panels, dims, weights, query_count, fetched,
                                                sums);
    case StorageType::kBfloat16:
      return SumValuesAs<StorageType::kBfloat16>(block, panels, dims, weights, query_count, fetched,
                                                 sums);
    case StorageType::kInt8:
      return SumInt8Values(block, panels, dims, weights, query_count, fetched, sums);
  }
}

// Rows that are added to a float64 sum each time that it is loaded into a register.
constexpr std::int64_t kStepRows = 4;
static_assert(kPanelRows % kStepRows == 0);

// Adds weights[i] * value of row rows[i] to `sums`, for one row after the other.
template <StorageType kStorage>
HWY_INLINE void AddRowsFloat64(const BlockView& block, DimRange dims,
                               const std::int64_t (&rows)[kStepRows],
                               const double (&weights)[kStepRows], double* HWY_RESTRICT sums) {
  const FloatTag d;
  const DoubleTag dd;
  const HalfFloatTag dh;
  constexpr std::int64_t kBytes = ElementBytes(kStorage);
  const std::byte* values[kStepRows];
  FloatVec scales[kStepRows];
  DoubleVec row_weights[kStepRows];
  HWY_UNROLL(4) for (std::int64_t i = 0; i < kStepRows; ++i) {
    const std::byte* const panel = block.panel(rows[i] / kPanelRows);
    const std::int64_t in_panel = rows[i] % kPanelRows;
    values[i] = panel + block.shape.value_offset(in_panel) + dims.begin * kBytes;
    scales[i] = hn::Zero(d);
    if constexpr (kStorage == StorageType::kInt8) {
      const std::byte* const scale = panel + block.shape.value_scale_offset(in_panel);
      scales[i] = hn::Set(d, *reinterpret_cast<const float*>(scale));
    }
    row_weights[i] = hn::Set(dd, weights[i]);
  }
  for (std::int64_t dim = 0; dim < dims.count; dim += kLanes) {
    DoubleVec low = hn::LoadU(dd, sums + dim);
    DoubleVec high = hn::LoadU(dd, sums + dim + kHalfLanes);
    HWY_UNROLL(4) for (std::int64_t i = 0; i < kStepRows; ++i) {
      const FloatVec value = DecodeScaled<kStorage>(values[i] + dim * kBytes, scales[i]);
      low = hn::MulAdd(row_weights[i], hn::PromoteTo(dd, hn::LowerHalf(value)), low);
      high = hn::MulAdd(row_weights[i], hn::PromoteTo(dd, hn::UpperHalf(dh, value)), high);
    }
    hn::StoreU(low, dd, sums + dim);
    hn::StoreU(high, dd, sums + dim + kHalfLanes);
  }
}

template <StorageType kStorage>
void SumFloat64As(const BlockView& block, PanelRange panels, DimRange dims,
                  const double* HWY_RESTRICT weights, double* HWY_RESTRICT sums) {
  for (std::int64_t row = panels.begin * kPanelRows; row < panels.end * kPanelRows;
       row += kStepRows) {
    std::int64_t rows[kStepRows];
    double row_weights[kStepRows];
    for (std::int64_t i = 0; i < kStepRows; ++i) {
      rows[i] = row + i;
      const double weight = weights[row + i];
      row_weights[i] = weight == -std::numeric_limits<double>::infinity() ? 0 : weight;
    }
    AddRowsFloat64<kStorage>(block, dims, rows, row_weights, sums);
  }
}

template <StorageType kStorage>
void AddValuesAs(const BlockView& block, DimRange dims, absl::Span<const std::uint16_t> rows,
                 const double* HWY_RESTRICT weights, double* HWY_RESTRICT sums) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t row_bytes = dims.count * ElementBytes(kStorage);
  const auto prefetch = [&](std::int64_t index) {
    if (index >= count) return;
    const std::int64_t row = rows[static_cast<std::size_t>(index)];
    const std::byte* const value = block.panel(row / kPanelRows) +
                                   block.shape.value_offset(row % kPanelRows) +
                                   dims.begin * ElementBytes(kStorage);
    for (std::int64_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(value + at);
  };
  // The rows are scattered, so the CPU's own prefetching does not find the next one.
  constexpr std::int64_t kRowsAhead = 2 * kStepRows;
  for (std::int64_t i = 0; i < kRowsAhead; ++i) prefetch(i);
  for (std::int64_t first = 0; first < count; first += kStepRows) {
    for (std::int64_t i = 0; i < kStepRows; ++i) prefetch(first + kRowsAhead + i);
    // If fewer than kStepRows rows are left, row rows[first] with weight 0 fills up the step.
    std::int64_t step[kStepRows];
    double row_weights[kStepRows];
    for (std::int64_t i = 0; i < kStepRows; ++i) {
      const bool is_row = first + i < count;
      step[i] = rows[static_cast<std::size_t>(is_row ? first + i : first)];
      row_weights[i] = is_row ? weights[first + i] : 0;
    }
    AddRowsFloat64<kStorage>(block, dims, step, row_weights, sums);
  }
}

void AddValuesOneTarget(const BlockView& block, DimRange dims, absl::Span<const std::uint16_t> rows,
                        const double* weights, double* sums) {
  switch (block.shape.storage) {
    case StorageType::kFloat32:
      return AddValuesAs<StorageType::kFloat32>(block, dims, rows, weights, sums);
    case StorageType::kBfloat16:
      return AddValuesAs<StorageType::kBfloat16>(block, dims, rows, weights, sums);
    case StorageType::kInt8:
      return AddValuesAs<StorageType::kInt8>(block, dims, rows, weights, sums);
  }
}

void SumValuesFloat64OneTarget(const BlockView& block, PanelRange panels, DimRange dims,
                               const double* weights, double* sums) {
  switch (block.shape.storage) {
    case StorageType::kFloat32:
      return SumFloat64As<StorageType::kFloat32>(block, panels, dims, weights, sums);
    case StorageType::kBfloat16:
      return SumFloat64As<StorageType::kBfloat16>(block, panels, dims, weights, sums);
    case StorageType::kInt8:
      return SumFloat64As<StorageType::kInt8>(block, panels, dims, weights, sums);
  }
}

void CombineSumsOneTarget(double factor, const double* HWY_RESTRICT others, double other_factor,
                          std::int64_t count, double* HWY_RESTRICT sums) {
  const DoubleTag d;
  constexpr std::int64_t kStep = kHalfLanes;
  const auto combine = [=](DoubleVec sum, DoubleVec other) HWY_ATTR {
    return hn::MulAdd(sum, hn::Set(d, factor), hn::Mul(other, hn::Set(d, other_factor)));
  };
  std::int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    hn::StoreU(combine(hn::LoadU(d, sums + i), hn::LoadU(d, others + i)), d, sums + i);
  }
  // Combines the rest one by one, with the same operations, so that all sums are rounded alike.
  for (; i < count; ++i) {
    sums[i] = hn::GetLane(combine(hn::Set(d, sums[i]), hn::Set(d, others[i])));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(SumValuesOneTarget);
HWY_EXPORT(SumValuesFloat64OneTarget);
HWY_EXPORT(CombineSumsOneTarget);
HWY_EXPORT(AddValuesOneTarget);

void SumValues(const BlockView& block, PanelRange panels, DimRange dims, const float* weights,
               int query_count, double* sums, const PanelPart& fetched) {
  HWY_DYNAMIC_DISPATCH(SumValuesOneTarget)
  (block, panels, dims, weights, query_count, fetched, sums);
}

void AddValues(const BlockView& block, DimRange dims, absl::Span<const std::uint16_t> rows,
               const double* weights, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddValuesOneTarget)(block, dims, rows, weights, sums);
}

void CombineSums(double factor, const double* others, double other_factor, std::int64_t count,
                 double* sums) {
  HWY_DYNAMIC_DISPATCH(CombineSumsOneTarget)(factor, others, other_factor, count, sums);
}

void SumValuesFloat64(const BlockView& block, PanelRange panels, DimRange dims,
                      const double* weights, double* sums) {
  HWY_DYNAMIC_DISPATCH(SumValuesFloat64OneTarget)(block, panels, dims, weights, sums);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
