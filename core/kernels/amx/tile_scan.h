#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/amx/tiles.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Scores rows and sums values, as score_rows and sum_values do, with tiles of 8-bit integers
// (tiles.h). Operands are fixed-point numbers. The products of their digits are summed exactly,
// except the lowest products, which are left out. So the bits of a result depend only on its query,
// row and block. They do not depend on the TileUnit, the vector width, the order, or the other
// queries and rows. The errors below are worst-case bounds.

enum class TileUnit {
  kPortable,  // Slow reference for kAmx.
  kAmx,       // Requires AmxIsUsable().
};

// The most components of a key: with double sums, and with float sums.
inline constexpr std::int64_t kTileKeyDimMax = 1024;
inline constexpr std::int64_t kTileFloatDimMax = 256;

// Return true if tiles take a query and a block whose |components| have these bounds.
bool KeysFitTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);
bool ValuesFitTiles(float value_magnitude);

// Returns an upper bound on the error of ScoreRowsInTiles with double sums. Float sums have two
// more roundings, which add up to 2^-23 of |query| |key| to the error.
double ScoreErrorInTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);

// Returns an upper bound on the error of a component of SumValuesInTiles over `row_count` rows. A
// row's term is |weight| times the largest |component| of its value. `largest_term` and `term_sum`
// are the largest and the sum of a query's terms. For up to kBlockRowsMax rows the bound is below
// 1.3e-6 * term_sum.
double SumErrorInTiles(std::int64_t row_count, double largest_term, double term_sum);

// The operands of one block, packed once for many queries. Not thread-safe. Keeps its buffers for
// the next block.
class PackedBlock {
 public:
  // Packs the rows of `panels`, without values if value_dims.count is 0. KeysFitTiles and, for
  // values, ValuesFitTiles must hold. The block's magnitudes must bound its components. `block`
  // need not outlive the call.
  void Pack(const BlockView& block, PanelRange panels, DimRange key_dims, DimRange value_dims);

  PanelRange panels() const { return panels_; }
  std::int64_t key_dim() const { return key_dim_; }
  std::int64_t value_dim() const { return value_dim_; }

  // The operands in the layout of PackKeys and PackValues.
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

// The operands of up to kTileQueries queries, packed once for many blocks. Packing takes an eighth
// of the time of scoring a block of 512 rows. Several threads may read them, but not during Pack.
class PackedQueries {
 public:
  // Each queries[q] points to key_dim floats, for which KeysFitTiles must hold. query_count is in
  // [1, kTileQueries].
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

  int count() const { return count_; }
  std::int64_t key_dim() const { return key_dim_; }

  // The operands in the layout of PackQueries.
  const Tile* tiles() const { return tiles_.data(); }
  const float* units() const { return units_.data(); }

 private:
  int count_ = 0;
  std::int64_t key_dim_ = 0;
  std::vector<Tile> tiles_;
  std::array<float, kTileQueries> units_ = {};
};

// Sets sums[q * kScratchStride + r] to the dot product of query q and the key of row r, for every
// row r of `panels`. `panels` must be within block.panels(). Block and queries must have the same
// key_dim(), which is at most kTileFloatDimMax for float sums.
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, float* sums);
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, double* sums);

// For each query q, sums weights[q * kScratchStride + r] * value of row r over the rows r of
// `panels`. Adds component i of the sum to sums[q * PaddedValueDim(block.value_dim()) + i].
// `panels` must be within block.panels(), query_count in [1, kTileQueries], and |weight| at most 1.
// The largest |weight| of a query must be 0 or at least 2^-7. A row of weight 0 changes no bit.
// Components past block.value_dim() receive garbage.
void SumValuesInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const float* weights, int query_count, double* sums);

// Returns true if AMX is usable and gives the bits of TileUnit::kPortable for random blocks of many
// shapes. The first call takes some milliseconds. Thread-safe.
bool AmxPassesSelfCheck();

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_
