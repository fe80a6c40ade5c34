#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_

#include "core/kernels/amx/tiles.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Packs floats as operands of tiles (tiles.h). A number is an integer times a unit. Each base-256
// digit of the integer, in [-128, 127], is in a tile of its own, the highest digit's tile first.
//
// A product of tiles sums over a chunk: 64 components of a key, or 64 rows of values. Zeros fill a
// chunk that is not full. In both operands, element i of a chunk has the index
// k = 4 * (i % 16) + i / 16 (tiles.h). With this order, sorting the digits never crosses 32-bit
// lanes.
inline constexpr std::int64_t kChunk = 64;
inline constexpr std::int64_t kChunkPanels = kChunk / kPanelRows;

// Digits of a number: kDigits in keys, queries and weights, kValueDigits in values.
inline constexpr int kDigits = 4;
inline constexpr int kValueDigits = 3;

constexpr std::int64_t ChunkCount(std::int64_t count) { return (count + kChunk - 1) / kChunk; }

// The index of the first chunk of rows that `panels` touch, and the number of these chunks.
constexpr std::int64_t FirstRowChunk(PanelRange panels) { return panels.begin / kChunkPanels; }
constexpr std::int64_t RowChunkCount(PanelRange panels) {
  return (panels.end + kChunkPanels - 1) / kChunkPanels - FirstRowChunk(panels);
}

// A component of a key or query is its integer times 2^-31 of the vector's FixedPointBound
// (core/kernels/fixed_point.h). But PackKeys and PackQueries write 2^-19 of this bound to `units`.
// The product of a key's and a query's element of `units` is the unit of level 3 (tile_scan.cc).
// Level 3 sums the products of digits i and 3 - i.

// Writes the keys of `panels` as B operands [panels][chunks of components][kDigits], and the keys'
// units [panels][kPanelRows].
void PackKeys(const BlockView& block, PanelRange panels, DimRange dims, Tile* tiles, float* units);

// Writes queries of dim_count components each as A operands [chunks of components][kDigits], and
// their units [queries]. Does not change the rows of a tile from query_count on.
void PackQueries(const float* const* queries, int query_count, std::int64_t dim_count, Tile* tiles,
                 float* units);

// The integer of a component as large as its row's magnitude. kValueSteps is the largest integer
// that three digits hold, less a margin for rounding.
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

// Returns the largest |weights[r] * magnitude of row r| over the rows r of `panels`. magnitudes[0]
// is the magnitude of the first row of `panels`.
float LargestTerm(const float* weights, const float* magnitudes, PanelRange panels);

// Writes weights[q * kScratchStride + r] times the magnitude of row r, for the rows r of `panels`,
// as A operands [chunks of rows][kDigits]. magnitudes[0] is the magnitude of the first row of
// `panels`. Query q has the unit largest[q] / kWeightSteps, where largest[q] must be at least its
// LargestTerm. Float32 must hold kWeightSteps / largest[q], unless largest[q] is 0. Does not change
// the rows of a tile from query_count on.
void PackWeights(const float* weights, const float* magnitudes, const float* largest,
                 int query_count, PanelRange panels, Tile* tiles);

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_AMX_TILE_OPERANDS_H_
