#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/amx/tiles.h"
#include "core/kernels/panel.h"

namespace softlookup::kernels {

// Scores rows as score_rows.h does, and sums values as sum_values.h does, but with tiles of 8-bit
// integers (tiles.h). Keys, queries, weights and values become fixed-point numbers. The products of
// their digits are summed exactly, except the lowest products, which are left out. So the order of
// additions changes no bit. The bits of a score depend only on its query and its row. The bits of a
// sum of values depend only on the rows that are summed and on their weights. The TileUnit, the
// vector width and other queries change no bit either.

enum class TileUnit {
  kPortable,  // Slow reference for kAmx.
  kAmx,       // Requires AmxIsUsable().
};

// The most components of a key that ScoreRowsInTiles() takes: with double sums, and with float
// sums.
inline constexpr std::int64_t kTileKeyDimMax = 1024;
inline constexpr std::int64_t kTileFloatDimMax = 256;

// KeysFitTiles() returns whether ScoreRowsInTiles() takes queries and keys of key_dim components
// whose |components| have these bounds. ValuesFitTiles() returns the same for SumValuesInTiles()
// and values.
bool KeysFitTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);
bool ValuesFitTiles(float value_magnitude);

// Returns an upper bound on the error of a double sum of ScoreRowsInTiles(). The magnitudes are
// upper bounds on the |components| of the query and of the key. A float sum has two more roundings,
// which change it by at most another 2^-23 |query| |key|.
double ScoreErrorInTiles(std::int64_t key_dim, float query_magnitude, float key_magnitude);

// Returns an upper bound on the error of a component of a sum of `row_count` rows by
// SumValuesInTiles(). A row's term is |weight| times the largest |component| of its value.
// `largest_term` is the largest and `term_sum` is the sum of one query's terms. For up to
// kBlockRowsMax rows, the bound is below 1.3e-6 * term_sum.
double SumErrorInTiles(std::int64_t row_count, double largest_term, double term_sum);

// The keys and values of a range of panels, packed once as operands of tiles for many queries. The
// next Pack() overwrites them, and reuses their buffers. Not thread-safe.
class PackedBlock {
 public:
  // Packs, of the rows of `panels`, the components key_dims of the keys and value_dims of the
  // values. Packs no values if value_dims.count is 0. KeysFitTiles() must hold for the block's
  // key_magnitude, and ValuesFitTiles() for its value_magnitude if values are packed. `block` need
  // not outlive the call.
  void Pack(const BlockView& block, PanelRange panels, DimRange key_dims, DimRange value_dims);

  PanelRange panels() const { return panels_; }
  std::int64_t key_dim() const { return key_dim_; }
  std::int64_t value_dim() const { return value_dim_; }

  // The operands, in the layout that PackKeys() and PackValues() write (tile_operands.h).
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

// Up to kTileQueries queries, packed once as operands of tiles for many blocks. Packing takes an
// eighth of the time of scoring the queries against a block of 512 rows. Several threads may read a
// PackedQueries, but not during Pack().
class PackedQueries {
 public:
  // Each queries[q] points to key_dim floats, for which KeysFitTiles must hold. query_count is in
  // [1, kTileQueries].
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

  int count() const { return count_; }
  std::int64_t key_dim() const { return key_dim_; }

  // The operands, in the layout that PackQueries() writes (tile_operands.h).
  const Tile* tiles() const { return tiles_.data(); }
  const float* units() const { return units_.data(); }

 private:
  int count_ = 0;
  std::int64_t key_dim_ = 0;
  std::vector<Tile> tiles_;
  std::array<float, kTileQueries> units_ = {};
};

// Sets sums[q * kScratchStride + r] to the dot product of query q and the key of row r, for every
// row r of `panels`. r counts from the first row of the block that was packed. `panels` must be
// within block.panels(). `block` and `queries` must have the same key_dim(), which is at most
// kTileFloatDimMax for float sums, and at most kTileKeyDimMax for double sums.
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, float* sums);
void ScoreRowsInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const PackedQueries& queries, double* sums);

// For each query q, sums weights[q * kScratchStride + r] * value of row r over the rows r of
// `panels`. r counts from the first row of the block that was packed, which must have been packed
// with values. Adds component i of the sum to sums[q * PaddedValueDim(block.value_dim()) + i].
// `panels` must be within block.panels(), query_count in [1, kTileQueries], and |weight| at most 1.
// The largest |weight| of a query in `panels` must be 0 or at least 2^-7. A row of weight 0 changes
// no bit. The elements of `sums` for components past block.value_dim() receive garbage.
void SumValuesInTiles(TileUnit unit, const PackedBlock& block, PanelRange panels,
                      const float* weights, int query_count, double* sums);

// Returns true if AMX is usable, and gave the same bits as TileUnit::kPortable for random blocks of
// many shapes. The first call compares them, which takes some milliseconds. Thread-safe.
bool AmxPassesSelfCheck();

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_AMX_TILE_SCAN_H_
