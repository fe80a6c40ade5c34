#ifndef SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_
#define SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// Products of queries and INT8 keys, in integers: a query's components become fixed-point numbers
// of four base-256 digits, and the products of each digit with the keys' numbers are added up
// exactly, in 32 bits. So the bits of a sum depend on its query and row alone, and on no unit,
// vector width, neighbour or order; the errors below hold in the worst case.

enum class DotUnit {
  kPortable,  // Slow: what kVnni is compared with.
  kVnni,      // AVX-512's dot products of four bytes. Only where VnniIsUsable().
};

// AVX-512 VNNI, and VBMI to sort bytes. Thread-safe.
bool VnniIsUsable();

// Can these be multiplied so? Magnitudes are bounds on |component|: a query's, and a block's.
bool KeysFitInt8Dots(float query_magnitude, float key_magnitude);

// Bounds what ScoreInt8Rows is off by. `norms` bounds |query| |key|.
double ScoreErrorInInt8(std::int64_t key_dim, float query_magnitude, float key_magnitude,
                        double norms);

// Sums in float32 take so many components of a key at most, and are off by another
// kInt8FloatError * norms.
inline constexpr std::int64_t kInt8FloatDimMax = 1024;
inline constexpr double kInt8FloatError = 0x3.2p-24;

// Queries as ScoreInt8Rows takes them. Not thread-safe, but for reading; memory is kept.
class DigitQueries {
 public:
  // Each queries[q] points to key_dim floats, which must fit; query_count is in [1, kTileQueries].
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

  int count() const { return count_; }
  std::int64_t key_dim() const { return key_dim_; }
  // Fours of components, with zeros behind the last one.
  std::int64_t group_count() const { return (key_dim_ + 3) / 4; }

  // [group_count()][4 digits, the lowest first]: bytes of the group's components, a digit and 128.
  const std::uint32_t* digits(int query) const {
    return digits_.data() + static_cast<std::size_t>(query) * stride_;
  }
  // What a component is a multiple of.
  float unit(int query) const { return units_[query]; }

 private:
  int count_ = 0;
  std::int64_t key_dim_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> digits_;
  std::array<float, kTileQueries> units_ = {};
};

// sums[q * kScratchStride + r] = query q times the key of row r, its components from `first_dim`
// on, for every row r of `panels`. The block is INT8. Rows past block.row_count get sums against
// zero keys. `fetched`, if any, is fetched meanwhile.
void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, float* sums, const PanelPart& fetched = {});
void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, double* sums, const PanelPart& fetched = {});

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_
