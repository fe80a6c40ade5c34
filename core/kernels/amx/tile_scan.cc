#include "core/kernels/amx/tile_scan.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "core/kernels/amx/tile_operands.h"
#include "core/kernels/fixed_point.h"
#include "core/kernels/sum_values.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/amx/tile_scan.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/vectors-inl.h"
// clang-format on

#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_CC_  // Once for all targets.
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_CC_
namespace softlookup::kernels {

// Digit 0 is the highest. Level l is the sum of the products of digit i of A and digit l - i of B,
// for all i. Its factor in the result is 256^-l. Levels from 4 on are left out. Registers 0 to 2
// sum the levels 0 to 2. Registers 3 and 4 each sum a part of level 3, because a register is ready
// for its next product only after three other products.
using Levels = SumTile[kSumRegisters];

// A level of a score has at most 4 products per component, and a level of values at most 3 per row.
// A product is at most 2^14.
static_assert(4 * (std::int64_t{1} << 14) * kTileKeyDimMax < std::int64_t{1} << 31);
static_assert(3 * (std::int64_t{1} << 14) * kBlockRowsMax < std::int64_t{1} << 31);
// Float32 holds each level of a score exactly.
static_assert(4 * (std::int64_t{1} << 14) * kTileFloatDimMax <= std::int64_t{1} << 24);

}  // namespace softlookup::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

template <class Tiles>
HWY_INLINE void ZeroLevels(Tiles& tiles) {
  tiles.template Zero<0>();
  tiles.template Zero<1>();
  tiles.template Zero<2>();
  tiles.template Zero<3>();
  tiles.template Zero<4>();
}

template <class Tiles>
HWY_INLINE void StoreLevels(const Tiles& tiles, Levels& levels) {
  tiles.template Store<0>(levels[0]);
  tiles.template Store<1>(levels[1]);
  tiles.template Store<2>(levels[2]);
  tiles.template Store<3>(levels[3]);
  tiles.template Store<4>(levels[4]);
}

// Adds the products of 64 components to the levels, in 10 products of tiles with 10 loads.
template <class Tiles>
HWY_INLINE void AddScores(Tiles& tiles, const Tile* queries, const Tile* keys) {
  tiles.template Load<5>(queries[1]);
  tiles.template Load<6>(keys[0]);
  tiles.template Dot<1, 5, 6>();
  tiles.template Load<7>(keys[1]);
  tiles.template Dot<2, 5, 7>();
  tiles.template Load<7>(keys[2]);
  tiles.template Dot<3, 5, 7>();
  tiles.template Load<5>(queries[0]);
  tiles.template Dot<0, 5, 6>();
  tiles.template Load<6>(keys[1]);
  tiles.template Dot<1, 5, 6>();
  tiles.template Dot<2, 5, 7>();
  tiles.template Load<7>(keys[3]);
  tiles.template Dot<4, 5, 7>();
  tiles.template Load<5>(queries[3]);
  tiles.template Load<7>(keys[0]);
  tiles.template Dot<3, 5, 7>();
  tiles.template Load<5>(queries[2]);
  tiles.template Dot<2, 5, 7>();
  tiles.template Dot<4, 5, 6>();
}

// Adds the products of 64 rows to the levels, in 9 products of tiles with 9 loads.
template <class Tiles>
HWY_INLINE void AddValues(Tiles& tiles, const Tile* weights, const Tile* values) {
  tiles.template Load<5>(weights[1]);
  tiles.template Load<6>(values[0]);
  tiles.template Dot<1, 5, 6>();
  tiles.template Load<7>(values[2]);
  tiles.template Dot<3, 5, 7>();
  tiles.template Load<7>(values[1]);
  tiles.template Dot<2, 5, 7>();
  tiles.template Load<5>(weights[0]);
  tiles.template Dot<0, 5, 6>();
  tiles.template Dot<1, 5, 7>();
  tiles.template Load<7>(values[2]);
  tiles.template Dot<2, 5, 7>();
  tiles.template Load<5>(weights[3]);
  tiles.template Dot<4, 5, 6>();
  tiles.template Load<5>(weights[2]);
  tiles.template Load<7>(values[1]);
  tiles.template Dot<3, 5, 7>();
  tiles.template Dot<2, 5, 6>();
}

// Returns the exact sum of the levels, times their factors, in units of level 3: for the row `row`,
// and for a vector of columns from `column` on.
HWY_INLINE DoubleVec JoinLevels(const Levels& levels, int row, std::size_t column) {
  const DoubleTag d;
  const hn::Rebind<std::int32_t, DoubleTag> di;
  const auto level = [&](int l) HWY_ATTR { return hn::Load(di, levels[l].sums[row] + column); };
  const DoubleVec step = hn::Set(d, 256.0);
  DoubleVec sum = hn::MulAdd(hn::PromoteTo(d, level(0)), step, hn::PromoteTo(d, level(1)));
  sum = hn::MulAdd(sum, step, hn::PromoteTo(d, level(2)));
  return hn::MulAdd(sum, step, hn::PromoteTo(d, hn::Add(level(3), level(4))));
}

HWY_INLINE void WriteScores(const Levels& levels, int query, float query_unit,
                            const float* HWY_RESTRICT key_units, double* HWY_RESTRICT sums) {
  const DoubleTag d;
  for (std::size_t row = 0; row < kPanelRows; row += kHalfLanes) {
    const DoubleVec key_unit = hn::PromoteTo(d, hn::LoadU(HalfFloatTag(), key_units + row));
    const DoubleVec unit = hn::Mul(hn::Set(d, static_cast<double>(query_unit)), key_unit);
    hn::StoreU(hn::Mul(JoinLevels(levels, query, row), unit), d, sums + row);
  }
}

// Two roundings matter: of `sum`, and of `high` where `high` makes up most of `sum`. `low` is
// rounded by at most 2^-24 of itself. This is negligible beside the levels that are left out.
HWY_INLINE void WriteScores(const Levels& levels, int query, float query_unit,
                            const float* HWY_RESTRICT key_units, float* HWY_RESTRICT sums) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec step = hn::Set(d, 256.0f);
  for (std::size_t row = 0; row < kPanelRows; row += kLanes) {
    const auto level = [&](int l) HWY_ATTR { return hn::Load(di, levels[l].sums[query] + row); };
    const auto lowest = hn::ConvertTo(d, hn::Add(level(3), level(4)));
    const FloatVec low = hn::MulAdd(hn::ConvertTo(d, level(2)), step, lowest);
    const FloatVec high = hn::MulAdd(hn::ConvertTo(d, level(0)), step, hn::ConvertTo(d, level(1)));
    const FloatVec sum = hn::MulAdd(high, hn::Set(d, 65536.0f), low);
    const FloatVec of_query = hn::Mul(sum, hn::Set(d, query_unit));
    hn::StoreU(hn::Mul(of_query, hn::LoadU(d, key_units + row)), d, sums + row);
  }
}

template <class Tiles, typename Sum>
void ScoreRowsWith(const PackedBlock& block, PanelRange panels, const PackedQueries& queries,
                   Sum* sums) {
  const std::int64_t chunks = ChunkCount(block.key_dim());
  // One panel's levels are joined while the tiles sum the next panel's.
  Levels levels[2];
  const auto write = [&](std::int64_t panel) HWY_ATTR {
    const float* key_units = block.key_units() + (panel - block.panels().begin) * kPanelRows;
    for (int q = 0; q < queries.count(); ++q) {
      WriteScores(levels[panel % 2], q, queries.units()[q], key_units,
                  sums + q * kScratchStride + panel * kPanelRows);
    }
  };
  Tiles tiles;
  tiles.Configure(queries.count());
  const Tile* const query_tiles = queries.tiles();
  const Tile* keys = block.keys() + (panels.begin - block.panels().begin) * chunks * kDigits;
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    ZeroLevels(tiles);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk, keys += kDigits) {
      AddScores(tiles, query_tiles + chunk * kDigits, keys);
    }
    StoreLevels(tiles, levels[panel % 2]);
    if (panel > panels.begin) write(panel - 1);
  }
  tiles.Release();
  if (panels.begin < panels.end) write(panels.end - 1);
}

template <class Tiles>
void SumValuesWith(const PackedBlock& block, PanelRange panels, const float* weights,
                   int query_count, double* sums) {
  const DoubleTag d;
  const std::int64_t stride = PaddedValueDim(block.value_dim());
  const std::int64_t chunks = RowChunkCount(panels);
  const std::int64_t packed_chunks = RowChunkCount(block.panels());
  alignas(64) Tile packed_weights[kBlockRowsMax / kChunk * kDigits];
  const float* magnitudes =
      block.value_magnitudes() + (panels.begin - block.panels().begin) * kPanelRows;
  float largest[kTileQueries];
  for (int q = 0; q < query_count; ++q) {
    largest[q] = LargestTerm(weights + q * kScratchStride, magnitudes, panels);
  }
  const auto pack = [&](std::int64_t chunk) {
    const std::int64_t first =
        std::max((FirstRowChunk(panels) + chunk) * kChunkPanels, panels.begin);
    const std::int64_t end = (FirstRowChunk(panels) + chunk + 1) * kChunkPanels;
    PackWeights(weights, magnitudes + (first - panels.begin) * kPanelRows, largest, query_count,
                {.begin = first, .end = std::min(end, panels.end)},
                packed_weights + chunk * kDigits);
  };

  Levels levels[2];
  const auto add = [&](std::int64_t sixteen) HWY_ATTR {
    for (int q = 0; q < query_count; ++q) {
      // The unit of level 3: the unit of a term times the unit of a value, times 256^2.
      const DoubleVec unit =
          hn::Set(d, largest[q] * (65536 / (double{kWeightSteps} * double{kValueSteps})));
      double* out = sums + q * stride + sixteen * kTileColumns;
      for (std::size_t i = 0; i < kTileColumns; i += kHalfLanes) {
        const DoubleVec sum = hn::Mul(JoinLevels(levels[sixteen % 2], q, i), unit);
        hn::StoreU(hn::Add(hn::LoadU(d, out + i), sum), d, out + i);
      }
    }
  };
  if (chunks == 0) return;
  pack(0);
  Tiles tiles;
  tiles.Configure(query_count);
  const std::int64_t sixteens = stride / kTileColumns;
  const std::int64_t first_chunk = FirstRowChunk(panels) - FirstRowChunk(block.panels());
  for (std::int64_t sixteen = 0; sixteen < sixteens; ++sixteen) {
    const Tile* values = block.values() + (sixteen * packed_chunks + first_chunk) * kValueDigits;
    ZeroLevels(tiles);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      AddValues(tiles, packed_weights + chunk * kDigits, values + chunk * kValueDigits);
      // Packs the next chunk while the tiles are busy.
      if (sixteen == 0 && chunk + 1 < chunks) pack(chunk + 1);
    }
    StoreLevels(tiles, levels[sixteen % 2]);
    if (sixteen > 0) add(sixteen - 1);
  }
  tiles.Release();
  if (sixteens > 0) add(sixteens - 1);
}

template <typename Sum>
void ScoreRowsOf(TileUnit unit, const PackedBlock& block, PanelRange panels,
                 const PackedQueries& queries, Sum* sums) {
#if HWY_ARCH_X86_64
  if (unit == TileUnit::kAmx) return ScoreRowsWith<AmxTiles>(block, panels, queries, sums);
#endif
  ScoreRowsWith<PortableTiles>(block, panels, queries, sums);
}

void ScoreRowsFloatsOneTarget(TileUnit unit, const PackedBlock& block, PanelRange panels,
                              const PackedQueries& queries, float* sums) {
  ScoreRowsOf(unit, block, panels, queries, sums);
}

void ScoreRowsDoublesOneTarget(TileUnit unit, const PackedBlock& block, PanelRange panels,
                               const PackedQueries& queries, double* sums) {
  ScoreRowsOf(unit, block, panels, queries, sums);
}

void SumValuesOneTarget(TileUnit unit, const PackedBlock& block, PanelRange panels,
                        const float* weights, int query_count, double* sums) {
#if HWY_ARCH_X86_64
  if (unit == TileUnit::kAmx) {
    return SumValuesWith<AmxTiles>(block, panels, weights, query_count, sums);
  }
#endif
  SumValuesWith<PortableTiles>(block, panels, weights, query_count, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(ScoreRowsFloatsOneTarget);
HWY_EXPORT(ScoreRowsDoublesOneTarget);
HWY_EXPORT(SumValuesOneTarget);

bool KeysFitTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude) {
  return key_dim <= kTileKeyDimMax && IsModerate(query_magnitude) && IsModerate(key_magnitude);
}

bool ValuesFitTiles(float value_magnitude) { return IsModerate(value_magnitude); }

// Let Q and K be the FixedPointBound of a query and a key. A product of digits i and j is at most
// 2^14, and its unit is 2^(48 - 8 (i + j) - 62) Q K. Each component has these errors, in multiples
// of 2^-32 Q K:
//   3     the three products of level 4, which are left out: 3 * 2^14 * 2^-46
//   2^-7  the two products of level 5, which are left out
//   2^-16 the product of level 6, which is left out
//   2     the query's and the key's component are off by half a unit, 2^-32 of the bound; each
//         error is multiplied by the other bound
//   2^-6  for float sums, the rounding of the low levels: less than one unit of level 3, 2^-38
double ScoreErrorInTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude) {
  return 5.03 * 0x1p-32 * static_cast<double>(key_dim) * FixedPointBound(query_magnitude) *
         FixedPointBound(key_magnitude);
}

// A row's term is its weight times the magnitude of its value. The unit of a term is
// w = largest_term / kWeightSteps. Values here are divided by their row's magnitude, so that their
// unit is v = 1 / kValueSteps. The product of a row's term and value has these errors:
//   value     off by half a unit, and by a quarter unit as a float32 of up to 2^23 units. Its
//             rounded factor adds 2^-24 of itself. Together (0.75 v + 2^-24) times the term.
//   term      off by half a unit, and three times by 2^-24 of itself: the term, its factor and the
//             scaled term are rounded. Each is multiplied by the value.
//   left out  two products of level 4, at most 2 * 2^14 * 2^8 w v, and one of level 5, at most
//             2^14 w v.
double SumErrorInTiles(std::int64_t row_count, double largest_term, double term_sum) {
  constexpr double kWeightUnit = 1 / double{kWeightSteps};  // Relative to the largest term.
  constexpr double kValueUnit = 1 / double{kValueSteps};    // Relative to the magnitude.
  constexpr double kLeftOut = (0x1p23 + 0x1p14) * kWeightUnit * kValueUnit;
  return term_sum * (0.76 * kValueUnit + 0x4.01p-24) +
         largest_term * static_cast<double>(row_count) * (0.51 * kWeightUnit + kLeftOut);
}

namespace {

template <typename T>
void Grow(std::vector<T>& buffer, std::int64_t size) {
  if (static_cast<std::int64_t>(buffer.size()) < size) {
    buffer.resize(static_cast<std::size_t>(size));
  }
}

}  // namespace

void PackedBlock::Pack(const BlockView& block, PanelRange panels, DimRange key_dims,
                       DimRange value_dims) {
  panels_ = panels;
  key_dim_ = key_dims.count;
  value_dim_ = value_dims.count;
  const std::int64_t panel_count = panels.end - panels.begin;
  Grow(keys_, panel_count * ChunkCount(key_dim_) * kDigits);
  Grow(key_units_, panel_count * kPanelRows);
  PackKeys(block, panels, key_dims, keys_.data(), key_units_.data());
  if (value_dim_ == 0) return;
  Grow(values_, PaddedValueDim(value_dim_) / kTileColumns * RowChunkCount(panels) * kValueDigits);
  Grow(value_magnitudes_, panel_count * kPanelRows);
  PackValues(block, panels, value_dims, values_.data(), value_magnitudes_.data());
}

void PackedQueries::Pack(const float* const* queries, int query_count, std::int64_t key_dim) {
  count_ = query_count;
  key_dim_ = key_dim;
  Grow(tiles_, ChunkCount(key_dim) * kDigits);
  PackQueries(queries, query_count, key_dim, tiles_.data(), units_.data());
}

void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, float* sums) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsFloatsOneTarget)(unit, block, panels, queries, sums);
}

void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, double* sums) {
  HWY_DYNAMIC_DISPATCH(ScoreRowsDoublesOneTarget)(unit, block, panels, queries, sums);
}

void SumValuesInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const float* weights, int query_count, double* sums) {
  HWY_DYNAMIC_DISPATCH(SumValuesOneTarget)(unit, block, panels, weights, query_count, sums);
}

namespace {

// Returns true if both units give the same bits for one random block.
bool UnitsAgree(std::mt19937_64& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::uniform_real_distribution<float> component(-1, 1);
  const PanelShape shape{.key_dim = draw(1, 200), .value_dim = draw(1, 70)};
  const std::int64_t panel_count = draw(1, 12);
  std::vector<float> rows(static_cast<std::size_t>(panel_count * shape.bytes() / 4));
  for (float& x : rows) x = component(random);
  std::vector<float> numbers(static_cast<std::size_t>(kTileQueries * shape.key_dim));
  for (float& x : numbers) x = component(random);
  std::vector<float> weights(kTileQueries * kScratchStride);
  for (float& x : weights) x = std::abs(component(random));
  const BlockView block{.shape = shape,
                        .full_panels = reinterpret_cast<const std::byte*>(rows.data()),
                        .full_panel_count = panel_count,
                        .row_count = panel_count * kPanelRows,
                        .key_magnitude = 1,
                        .value_magnitude = 1};
  const PanelRange panels{.begin = draw(0, panel_count - 1), .end = panel_count};
  PackedBlock packed;
  packed.Pack(block, panels, {.begin = 0, .count = shape.key_dim},
              {.begin = 0, .count = shape.value_dim});
  const auto query_count = static_cast<int>(draw(1, kTileQueries));
  const float* pointers[kTileQueries];
  for (int q = 0; q < query_count; ++q) pointers[q] = numbers.data() + q * shape.key_dim;
  PackedQueries queries;
  queries.Pack(pointers, query_count, shape.key_dim);

  const auto results = [&](TileUnit unit) {
    std::vector<double> sums(kTileQueries * (kScratchStride + PaddedValueDim(shape.value_dim)));
    ScoreRowsInTiles(unit, packed, panels, queries, sums.data());
    std::vector<float> floats(kTileQueries * kScratchStride);
    ScoreRowsInTiles(unit, packed, panels, queries, floats.data());
    sums.insert(sums.end(), floats.begin(), floats.end());
    SumValuesInTiles(unit, packed, panels, weights.data(), query_count,
                     sums.data() + kTileQueries * kScratchStride);
    return sums;
  };
  const std::vector<double> expected = results(TileUnit::kPortable);
  return std::memcmp(results(TileUnit::kAmx).data(), expected.data(),
                     expected.size() * sizeof(double)) == 0;
}

}  // namespace

bool AmxPassesSelfCheck() {
  static const bool passes = [] {
    if (!AmxIsUsable()) return false;
    std::mt19937_64 random(1);
    for (int i = 0; i < 32; ++i) {
      if (!UnitsAgree(random)) return false;
    }
    return true;
  }();
  return passes;
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
