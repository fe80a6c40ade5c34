#ifndef SOFTLOOKUP_CORE_KERNELS_TILE_SCAN_H_
#define SOFTLOOKUP_CORE_KERNELS_TILE_SCAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"
#include "core/kernels/tiles.h"

namespace softlookup::kernels {

// What score_rows and sum_values do, by tiles of 8-bit integers: operands as fixed-point numbers
// whose digits' products are summed exactly, less the lowest ones. So the bits of a result depend
// on its query, row and block alone, and on no unit, vector width, neighbour or order; the errors
// below hold in the worst case.

enum class TileUnit {
  kPortable,  // Slow: what kAmx is compared with.
  kAmx,       // Only where AmxIsUsable().
};

// The most components of a key, and those whose sums float32 can take.
inline constexpr std::int64_t kTileKeyDimMax = 1024;
inline constexpr std::int64_t kTileFloatDimMax = 256;

// Do the tiles take these? Magnitudes are bounds on |component|: a query's, and a block's.
bool KeysFitTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);
bool ValuesFitTiles(float value_magnitude);

// Bounds what ScoreRowsInTiles is off by. Sums in float32 are rounded twice besides, so off by
// another 2^-23 of themselves.
double ScoreErrorInTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);

// Bounds what a component of SumValuesInTiles is off by, given the sum and the largest of a query's
// |weight of a row| * |largest component of its value|: rows of weight 0 do not matter, however
// large they are. Less than 1.3e-6 * term_sum.
double SumErrorInTiles(std::int64_t row_count, double largest_term, double term_sum);

// The operands of one block, packed once for many queries. Not thread-safe; memory is kept from
// block to block.
class PackedBlock {
 public:
  // Packs the rows of `panels`. value_dims.count may be 0: no values. The block must fit tiles; its
  // magnitudes must bound its components. Afterwards `block` may go away.
  void Pack(const BlockView& block, PanelRange panels, DimRange key_dims, DimRange value_dims);

  PanelRange panels() const { return panels_; }
  std::int64_t key_dim() const { return key_dim_; }
  std::int64_t value_dim() const { return value_dim_; }

  // As PackKeys and PackValues have them.
  const Tile* keys() const { return keys_.data(); }
  const float* key_units() const { return key_units_.data(); }
  const Tile* values() const { return values_.data(); }
  const float* value_magnitudes() const { return value_magnitudes_.data(); }

 private:
  PanelRange panels_;
  std::int64_t key_dim_ = 0;
  std::int64_t value_dim_ = 0;
  std::vector<Tile> keys_;
  std::vector<float> key_units_;
  std::vector<Tile> values_;
  std::vector<float> value_magnitudes_;
};

// The operands of up to kTileQueries queries, packed once for many blocks: for a block of 512 rows,
// packing takes an eighth of the time that scoring does. Not thread-safe, but for reading.
class PackedQueries {
 public:
  // Each queries[q] points to key_dim floats; query_count is in [1, kTileQueries]. They must fit
  // tiles.
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

  int count() const { return count_; }
  std::int64_t key_dim() const { return key_dim_; }

  // As the function PackQueries has them.
  const Tile* tiles() const { return tiles_.data(); }
  const float* units() const { return units_.data(); }

 private:
  int count_ = 0;
  std::int64_t key_dim_ = 0;
  std::vector<Tile> tiles_;
  std::array<float, kTileQueries> units_ = {};
};

// sums[q * kScratchStride + r] = query q times the key of row r, for every row r of `panels`, which
// are among block.panels(). The key_dim() of both is the same; float sums take kTileFloatDimMax at
// most.
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, float* sums);
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, double* sums);

// Adds sum over the rows r of `panels`, which are among block.panels(), of
// weights[q * kScratchStride + r] * value of row r to sums[q * PaddedValueDim(block.value_dim()) +
// i] for query_count queries in [1, kTileQueries]. |Weights| are at most 1; a row of weight 0
// changes no bit. Components past block.value_dim() receive garbage.
void SumValuesInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const float* weights, int query_count, double* sums);

// True if AMX is usable and gives the bits of TileUnit::kPortable for random blocks of many shapes.
// Takes some milliseconds, the first time. Thread-safe.
bool AmxPassesSelfCheck();

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_TILE_SCAN_H_
