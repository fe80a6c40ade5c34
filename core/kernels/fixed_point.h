#ifndef SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
#define SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_

#include "core/kernels/panel.h"
#include "core/kernels/tiles.h"

namespace softlookup::kernels {

// Floats as the operands of tiles: a number is an integer times a unit, and the integer's base-256
// digits, each in [-128, 127], lie in as many tiles, the one of the highest digit first.
//
// What a product sums over (components of a key, rows of values) goes in chunks of 64; a chunk that
// is not full is filled up with zeros. Operands agree on the place of the i-th of a chunk, which is
// 4 * (i % 16) + i / 16: then digits are sorted within 32-bit lanes.
inline constexpr std::int64_t kChunk = 64;
inline constexpr std::int64_t kChunkPanels = kChunk / kPanelRows;

// Digits of keys, queries and weights, and of values.
inline constexpr int kDigits = 4;
inline constexpr int kValueDigits = 3;

constexpr std::int64_t ChunkCount(std::int64_t count) { return (count + kChunk - 1) / kChunk; }

// The chunks of rows that `panels` touch.
constexpr std::int64_t FirstRowChunk(PanelRange panels) { return panels.begin / kChunkPanels; }
constexpr std::int64_t RowChunkCount(PanelRange panels) {
  return (panels.end + kChunkPanels - 1) / kChunkPanels - FirstRowChunk(panels);
}

// The power of two that bounds a key or query of this magnitude (its largest |component|): below
// 2.01 times it, and never below 2^-90. Components are multiples of 2^-31 of it, rounded to
// nearest.
double FixedPointBound(float magnitude);

// True of magnitudes whose integers, units and products with each other are far from the ends of
// float32's range: 0, or in [2^-50, 2^50].
bool IsModerate(float magnitude);

// The sums that score_rows and sum_values make of levels of digits are multiples of `unit` below:
// a key's or query's is 2^-19 of its FixedPointBound, so that the product of both is what level 3,
// digits i and 3 - i, counts in.

// B operands [panels][chunks of components][kDigits] of the keys of `panels`, and units
// [panels][kPanelRows].
void PackKeys(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles, float* units);

// A operands [chunks of components][kDigits] of queries of dim_count components each, and their
// units. Rows behind query_count in a tile stay as they are.
void PackQueries(const float* const* queries, int query_count, std::int64_t dim_count, Tile* tiles,
                 float* units);

// Steps in a row's magnitude: as many as three digits hold, less what rounding may add.
inline constexpr float kValueSteps = 0x7f7f00;

// Steps in the largest of a query's weights times magnitudes: four digits hold 1.0039 times as
// many, of either sign.
inline constexpr float kWeightSteps = 0x7f000000;

// B operands [16 components][chunks of rows][kValueDigits] of the values of `panels`, and each
// row's magnitude [panels][kPanelRows], its largest |component|, but 2^-90 at least; the product
// sums over rows. A row's unit is its magnitude over kValueSteps, so that no row takes digits from
// another. Columns of components past dims.count are garbage.
void PackValues(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                float* magnitudes);

// The largest |weights[r] * magnitude of row r| over the rows of `panels`; magnitudes[0] is that of
// the first of them.
float LargestTerm(const float* weights, const float* magnitudes, PanelRange panels);

// A operands [chunks of rows][kDigits] of the weights of `panels`, weights[q * kScratchStride + r],
// times the rows' magnitudes, magnitudes[0] being the first one's: query q's are multiples of
// largest[q] / kWeightSteps, where largest[q] is LargestTerm. Rows behind query_count in a tile
// stay as they are.
void PackWeights(const float* weights, const float* magnitudes, const float* largest,
                 int query_count, PanelRange panels, Tile* tiles);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_FIXED_POINT_H_
