#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_

#include "core/kernels/amx/tiles.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Packs floats as operands of tiles (tiles.h). Each float becomes an integer times a unit. Each
// base-256 digit of the integer, in [-128, 127], is in a tile of its own, the highest digit's tile
// first.
//
// A product of tiles sums over a chunk: 64 components of a key, or 64 rows of values. Chunks of
// rows begin at multiples of 64 rows of the block. Zeros fill a chunk that is not full. In both
// operands, element i of a chunk has the index k = 4 * (i % 16) + i / 16 (tiles.h). With this
// order, sorting the digits never crosses 32-bit lanes.
inline constexpr std::int64_t kChunk = 64;
inline constexpr std::int64_t kChunkPanels = kChunk / kPanelRows;

// Digits of a number: kDigits in keys, queries and weights, kValueDigits in values.
inline constexpr int kDigits = 4;
inline constexpr int kValueDigits = 3;

constexpr std::int64_t ChunkCount(std::int64_t count) { return (count + kChunk - 1) / kChunk; }

// The index in the block of the first chunk of rows that `panels` touch, and the number of chunks
// that they touch.
constexpr std::int64_t FirstRowChunk(PanelRange panels) { return panels.begin / kChunkPanels; }
constexpr std::int64_t RowChunkCount(PanelRange panels) {
  return (panels.end + kChunkPanels - 1) / kChunkPanels - FirstRowChunk(panels);
}

// Let b be the FixedPointBound() of a key or query (core/kernels/fixed_point.h). A component is its
// integer times 2^-31 b. But the `units` that PackKeys() and PackQueries() write are 2^-19 b. The
// product of the `units` of a key and of a query is the unit of level 3 (tile_scan.cc). Level 3
// sums the products of digits i and 3 - i, where digit 0 is the highest.

// Writes the components `dims` of the keys of `panels` as B operands [panels][chunks of
// components][kDigits], and the keys' units [panels][kPanelRows].
void PackKeys(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles, float* units);

// Writes queries of dim_count components each as A operands [chunks of components][kDigits], and
// their units [queries]. Query q is row q of each tile. Does not change the rows from query_count
// on.
void PackQueries(const float* const* queries, int query_count, std::int64_t dim_count, Tile* tiles,
                 float* units);

// The integer of a value's component that is as large as its row's magnitude (PackValues()).
// kValueSteps is the largest integer that three digits hold, less a margin for rounding.
inline constexpr float kValueSteps = 0x7f7f00;

// The integer of a query's LargestTerm(). Four digits hold integers of 1.0039 times this size, of
// either sign.
inline constexpr float kWeightSteps = 0x7f000000;

// Writes the values of `panels` as B operands [groups of 16 components][chunks of
// rows][kValueDigits]. A product with them sums over rows. Also writes the rows' magnitudes
// [panels][kPanelRows]. A magnitude is the row's largest |component|, but at least 2^-90. A row's
// unit is magnitude / kValueSteps, so that a row of large components costs other rows no digits.
// Columns of components past dims.count are garbage.
void PackValues(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles,
                float* magnitudes);

// Returns the largest |weights[r] * magnitude of row r| over the rows r of `panels`. weights[0] is
// that of the block's first row, but magnitudes[0] is that of the first row of `panels`.
float LargestTerm(const float* weights, const float* magnitudes, PanelRange panels);

// Writes weights[q * kScratchStride + r] times the magnitude of row r, for the rows r of `panels`,
// as A operands [chunks of rows][kDigits]. r counts from the block's first row, but magnitudes[0]
// is that of the first row of `panels`. Query q is row q of each tile. The rows of a tile from
// query_count on are not changed. The unit of query q is largest[q] / kWeightSteps. largest[q] must
// be at least the query's LargestTerm(). Float32 must hold kWeightSteps / largest[q], unless
// largest[q] is 0.
void PackWeights(const float* weights, const float* magnitudes, const float* largest,
                 int query_count, PanelRange panels, Tile* tiles);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_
