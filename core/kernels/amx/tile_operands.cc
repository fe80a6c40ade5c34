#include "core/kernels/amx/tile_operands.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/kernels/fixed_point.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/amx/tile_operands.cc"
// clang-format off
#include "hwy/foreach_target.h"  // Must come first.
#include "core/kernels/decode-inl.h"
#include "core/kernels/digits-inl.h"
#include "core/kernels/vectors-inl.h"
// clang-format on

#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_CC_  // Once for all targets.
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_CC_
namespace softlookup::kernels {

// Let e be the exponent field that fixed_point.h defines, so that the bound is 2^(e - 126). The
// exponent field of 2^31 / bound is kFactorExponent - e. The exponent field of bound / 2^19 is
// e - kUnitExponent.
inline constexpr std::int32_t kFactorExponent = 127 + 31 + 126;
inline constexpr std::int32_t kUnitExponent = 126 + 19 - 127;
// The least magnitude of a value. It keeps kValueSteps / magnitude in float32's range.
inline constexpr float kMagnitudeMin = 0x1p-90f;

}  // namespace softlookup::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace softlookup::kernels {
namespace HWY_NAMESPACE {

// Sorts the digits of four vectors into one tile per digit. Here, digit 0 is the lowest, and its
// tile is the last. For each digit, the four bytes of lane i are this digit of numbers[0][i] to
// numbers[3][i]. They go to row `row` of the digit's tile, to its 32-bit column lane + i.
template <int kDigitCount>
HWY_INLINE void StoreDigits(const IntVec* HWY_RESTRICT numbers, Tile* HWY_RESTRICT tiles,
                            std::int64_t row, std::int64_t lane) {
  const IntTag d;
  const hn::Repartition<std::uint8_t, IntTag> d8;
  const hn::Repartition<std::uint16_t, IntTag> d16;
  const hn::Repartition<std::uint32_t, IntTag> d32;
  using U16 = hn::Vec<decltype(d16)>;
  U16 even[2], odd[2];  // even[i]: digits 0 and 2 of two numbers. odd[i]: digits 1 and 3.
  HWY_UNROLL(2) for (int i = 0; i < 2; ++i) {
    const U16 a = hn::BitCast(d16, numbers[2 * i]);
    const U16 b = hn::BitCast(d16, numbers[2 * i + 1]);
    even[i] =
        hn::BitCast(d16, hn::OddEven(hn::BitCast(d8, hn::ShiftLeft<8>(b)), hn::BitCast(d8, a)));
    odd[i] =
        hn::BitCast(d16, hn::OddEven(hn::BitCast(d8, b), hn::BitCast(d8, hn::ShiftRight<8>(a))));
  }
  const auto low = [&](const U16* pairs) HWY_ATTR {
    const auto high_half = hn::ShiftLeft<16>(hn::BitCast(d32, pairs[1]));
    return hn::OddEven(hn::BitCast(d16, high_half), pairs[0]);
  };
  const auto high = [&](const U16* pairs) HWY_ATTR {
    const auto low_half = hn::ShiftRight<16>(hn::BitCast(d32, pairs[0]));
    return hn::OddEven(pairs[1], hn::BitCast(d16, low_half));
  };
  const auto store = [&](U16 digits, int digit) HWY_ATTR {
    // The lowest digit's tile is the last.
    auto* to = tiles[kDigitCount - 1 - digit].bytes[row] + 4 * lane;
    hn::Store(hn::BitCast(d, digits), d, reinterpret_cast<std::int32_t*>(to));
  };
  store(low(even), 0);
  store(low(odd), 1);
  store(high(even), 2);
  if constexpr (kDigitCount == 4) store(high(odd), 3);
}

// Returns the exponent field e that fixed_point.h defines for a magnitude.
HWY_INLINE IntVec ExponentOf(FloatVec magnitude) {
  const IntTag d;
  const FloatVec bounded = hn::Mul(magnitude, hn::Set(FloatTag(), kFixedPointMargin));
  return hn::Max(hn::ShiftRight<23>(hn::BitCast(d, bounded)), hn::Set(d, kFixedPointExponentMin));
}

// Returns the factor that turns components into integers: 2^31 / bound.
HWY_INLINE FloatVec FactorOf(IntVec exponent) {
  const IntTag d;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<23>(hn::Sub(hn::Set(d, kFactorExponent), exponent)));
}

// Returns the unit that is written for a key or query: bound / 2^19.
HWY_INLINE FloatVec UnitOf(IntVec exponent) {
  const IntTag d;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(d, kUnitExponent))));
}

// Returns in each lane the largest |component(i)| for i < count.
template <class Component>
HWY_INLINE FloatVec MagnitudeOfKeys(const Component& component, std::int64_t count) {
  FloatVec magnitudes[4];  // Independent, so that the CPU computes all at once.
  HWY_UNROLL(4) for (FloatVec& magnitude : magnitudes) magnitude = hn::Zero(FloatTag());
  std::int64_t dim = 0;
  for (; dim + 4 <= count; dim += 4) {
    HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
      magnitudes[i] = hn::Max(magnitudes[i], hn::Abs(component(dim + i)));
    }
  }
  for (; dim < count; ++dim) magnitudes[0] = hn::Max(magnitudes[0], hn::Abs(component(dim)));
  return hn::Max(hn::Max(magnitudes[0], magnitudes[1]), hn::Max(magnitudes[2], magnitudes[3]));
}

template <StorageType kStorage>
void PackKeysAs(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                float* units) {
  const FloatTag d;
  const std::int64_t chunks = ChunkCount(dims.count);
  // Bytes from one component of a panel's keys to the next.
  constexpr std::int64_t kVectorBytes = kPanelRows * ElementBytes(kStorage);
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel, units += kPanelRows) {
    const std::byte* keys = block.panel(panel) + block.shape.key_offset(0, dims.begin);
    const auto* scales =
        reinterpret_cast<const float*>(block.panel(panel) + block.shape.key_scale_offset(0));
    for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes) {
      const FloatVec scale =
          kStorage == StorageType::kInt8 ? hn::LoadU(d, scales + lane) : hn::Zero(d);
      const std::byte* first = keys + lane * ElementBytes(kStorage);
      const auto component = [&](std::int64_t dim) HWY_ATTR {
        return DecodeScaled<kStorage>(first + dim * kVectorBytes, scale);
      };
      const IntVec exponent = ExponentOf(MagnitudeOfKeys(component, dims.count));
      hn::StoreU(UnitOf(exponent), d, units + lane);
      const FloatVec factor = FactorOf(exponent);
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        Tile* to = tiles + chunk * kDigits;
        for (std::int64_t row = 0; row < kTileRows; ++row) {
          IntVec numbers[4];
          HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
            const std::int64_t dim = chunk * kChunk + i * kTileRows + row;
            numbers[i] =
                dim < dims.count ? DigitsOf(hn::Mul(component(dim), factor)) : hn::Zero(IntTag());
          }
          StoreDigits<kDigits>(numbers, to, row, lane);
        }
      }
    }
    tiles += chunks * kDigits;
  }
}

void PackKeysOneTarget(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                       float* units) {
  switch (block.shape.storage) {
    case StorageType::kFloat32:
      return PackKeysAs<StorageType::kFloat32>(block, panels, dims, tiles, units);
    case StorageType::kBfloat16:
      return PackKeysAs<StorageType::kBfloat16>(block, panels, dims, tiles, units);
    case StorageType::kInt8:
      return PackKeysAs<StorageType::kInt8>(block, panels, dims, tiles, units);
  }
}

// Writes row `row` of an A operand: the 64 numbers of `sixteens`, which `factor` turns into
// integers.
HWY_INLINE void PackRowOfA(const float* const (&sixteens)[4], FloatVec factor, std::int64_t row,
                           Tile* HWY_RESTRICT tiles) {
  const FloatTag d;
  for (std::int64_t lane = 0; lane < kPanelRows; lane += kLanes) {
    IntVec numbers[4];
    HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
      numbers[i] = DigitsOf(hn::Mul(hn::LoadU(d, sixteens[i] + lane), factor));
    }
    StoreDigits<kDigits>(numbers, tiles, row, lane);
  }
}

void PackQueriesOneTarget(const float* const* queries, int query_count, std::int64_t dim_count,
                          Tile* tiles, float* units) {
  const FloatTag d;
  for (int q = 0; q < query_count; ++q) {
    const IntVec exponent = ExponentOf(hn::Set(d, MagnitudeOf(queries[q], dim_count)));
    units[q] = hn::GetLane(UnitOf(exponent));
    const FloatVec factor = FactorOf(exponent);
    for (std::int64_t chunk = 0; chunk < ChunkCount(dim_count); ++chunk) {
      const float* components = queries[q] + chunk * kChunk;
      float filled[kChunk];
      const std::int64_t count = dim_count - chunk * kChunk;
      if (count < kChunk) {
        std::fill(std::copy_n(components, count, filled), filled + kChunk, 0.0f);
        components = filled;
      }
      PackRowOfA({components, components + 16, components + 32, components + 48}, factor, q,
                 tiles + chunk * kDigits);
    }
  }
}

// Returns the largest |component| of a row's value, but at least kMagnitudeMin.
template <StorageType kStorage>
HWY_INLINE float MagnitudeOfValue(const std::byte* value, FloatVec scale, std::int64_t count) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  constexpr std::int64_t kBytes = ElementBytes(kStorage);
  const auto lanes = static_cast<std::int64_t>(kLanes);
  FloatVec magnitudes = hn::Set(d, kMagnitudeMin);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    magnitudes = hn::Max(magnitudes, hn::Abs(DecodeScaled<kStorage>(value + i * kBytes, scale)));
  }
  if (i < count) {
    // Masks out the lanes behind the value.
    const FloatVec last = hn::Abs(DecodeScaled<kStorage>(value + i * kBytes, scale));
    const auto is_own = hn::Lt(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(count - i)));
    magnitudes = hn::Max(magnitudes, hn::IfThenElseZero(hn::RebindMask(d, is_own), last));
  }
  return hn::GetLane(hn::MaxOfLanes(d, magnitudes));
}

template <StorageType kStorage>
void PackValuesAs(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                  float* magnitudes) {
  const FloatTag d;
  constexpr std::int64_t kBytes = ElementBytes(kStorage);
  const std::int64_t chunks = RowChunkCount(panels);
  const std::int64_t sixteens = (dims.count + kTileColumns - 1) / kTileColumns;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk, tiles += kValueDigits) {
    const std::int64_t first_panel = (FirstRowChunk(panels) + chunk) * kChunkPanels;
    for (std::int64_t row = 0; row < kPanelRows; ++row) {
      const std::byte* values[4];  // Null where `panels` has no row.
      FloatVec scales[4], factors[4];
      for (int i = 0; i < 4; ++i) {
        const std::int64_t p = first_panel + i;
        values[i] = nullptr;
        scales[i] = factors[i] = hn::Zero(d);
        if (p < panels.begin || p >= panels.end) continue;
        const std::byte* panel = block.panel(p);
        values[i] = panel + block.shape.value_offset(row) + dims.begin * kBytes;
        if constexpr (kStorage == StorageType::kInt8) {
          scales[i] = hn::Set(
              d, reinterpret_cast<const float*>(panel + block.shape.value_scale_offset(0))[row]);
        }
        const float magnitude = MagnitudeOfValue<kStorage>(values[i], scales[i], dims.count);
        magnitudes[(p - panels.begin) * kPanelRows + row] = magnitude;
        factors[i] = hn::Set(d, kValueSteps / magnitude);
      }
      for (std::int64_t sixteen = 0; sixteen < sixteens; ++sixteen) {
        Tile* to = tiles + sixteen * chunks * kValueDigits;
        for (std::int64_t lane = 0; lane < kTileColumns; lane += kLanes) {
          const std::int64_t offset = (sixteen * kTileColumns + lane) * kBytes;
          IntVec numbers[4];
          HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
            numbers[i] =
                values[i] == nullptr
                    ? hn::Zero(IntTag())
                    : DigitsOf(hn::Mul(DecodeScaled<kStorage>(values[i] + offset, scales[i]),
                                       factors[i]));
          }
          StoreDigits<kValueDigits>(numbers, to, row, lane);
        }
      }
    }
  }
}

void PackValuesOneTarget(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                         float* magnitudes) {
  switch (block.shape.storage) {
    case StorageType::kFloat32:
      return PackValuesAs<StorageType::kFloat32>(block, panels, dims, tiles, magnitudes);
    case StorageType::kBfloat16:
      return PackValuesAs<StorageType::kBfloat16>(block, panels, dims, tiles, magnitudes);
    case StorageType::kInt8:
      return PackValuesAs<StorageType::kInt8>(block, panels, dims, tiles, magnitudes);
  }
}

float LargestTermOneTarget(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT magnitudes,
                           PanelRange panels) {
  const FloatTag d;
  FloatVec largest = hn::Zero(d);
  const float* weight = weights + panels.begin * kPanelRows;
  const std::int64_t count = (panels.end - panels.begin) * kPanelRows;
  for (std::int64_t r = 0; r < count; r += kLanes) {
    const FloatVec term = hn::Mul(hn::LoadU(d, weight + r), hn::LoadU(d, magnitudes + r));
    largest = hn::Max(largest, hn::Abs(term));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

void PackWeightsOneTarget(const float* weights, const float* magnitudes, const float* largest,
                          int query_count, PanelRange panels, Tile* tiles) {
  const FloatTag d;
  for (std::int64_t chunk = 0; chunk < RowChunkCount(panels); ++chunk) {
    const std::int64_t first_panel = (FirstRowChunk(panels) + chunk) * kChunkPanels;
    for (int q = 0; q < query_count; ++q) {
      alignas(64) float terms[kChunk] = {};
      for (int i = 0; i < 4; ++i) {
        const std::int64_t panel = first_panel + i;
        if (panel < panels.begin || panel >= panels.end) continue;
        const float* weight = weights + q * kScratchStride + panel * kPanelRows;
        const float* magnitude = magnitudes + (panel - panels.begin) * kPanelRows;
        for (std::size_t lane = 0; lane < kPanelRows; lane += kLanes) {
          hn::Store(hn::Mul(hn::LoadU(d, weight + lane), hn::LoadU(d, magnitude + lane)), d,
                    terms + i * kPanelRows + lane);
        }
      }
      // If the largest term is 0, all terms are.
      const float factor = largest[q] == 0 ? 0 : kWeightSteps / largest[q];
      SOFTLOOKUP_DCHECK(factor <= std::numeric_limits<float>::max()) << "largest " << largest[q];
      PackRowOfA({terms, terms + 16, terms + 32, terms + 48}, hn::Set(d, factor), q,
                 tiles + chunk * kDigits);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace softlookup::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace softlookup::kernels {

HWY_EXPORT(PackKeysOneTarget);
HWY_EXPORT(PackQueriesOneTarget);
HWY_EXPORT(PackValuesOneTarget);
HWY_EXPORT(LargestTermOneTarget);
HWY_EXPORT(PackWeightsOneTarget);

void PackKeys(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles, float* units) {
  HWY_DYNAMIC_DISPATCH(PackKeysOneTarget)(block, panels, dims, tiles, units);
}

void PackQueries(const float* const* queries, int query_count, std::int64_t dim_count, Tile* tiles,
                 float* units) {
  HWY_DYNAMIC_DISPATCH(PackQueriesOneTarget)(queries, query_count, dim_count, tiles, units);
}

void PackValues(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                float* magnitudes) {
  HWY_DYNAMIC_DISPATCH(PackValuesOneTarget)(block, panels, dims, tiles, magnitudes);
}

float LargestTerm(const float* weights, const float* magnitudes, PanelRange panels) {
  return HWY_DYNAMIC_DISPATCH(LargestTermOneTarget)(weights, magnitudes, panels);
}

void PackWeights(const float* weights, const float* magnitudes, const float* largest,
                 int query_count, PanelRange panels, Tile* tiles) {
  HWY_DYNAMIC_DISPATCH(PackWeightsOneTarget)
  (weights, magnitudes, largest, query_count, panels, tiles);
}

}  // namespace softlookup::kernels
#endif  // HWY_ONCE
