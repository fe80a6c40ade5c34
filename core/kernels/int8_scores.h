#ifndef SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_
#define SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/panel.h"
#include "core/kernels/prefetch.h"

namespace softlookup::kernels {

// Dot products of queries and INT8 keys, in integers. A query's components become fixed-point
// numbers of four base-256 digits. The products of each digit with the keys' integers are summed
// exactly in 32 bits. So the bits of a sum depend only on its query and row. They do not depend on
// the DotUnit, the vector width, the order of additions, or the other queries and rows. The errors
// below are worst-case bounds.

enum class DotUnit {
  kPortable,  // Slow reference for kVnni.
  kVnni,      // AVX-512's dot products of four bytes. Requires VnniIsUsable().
};

// Returns true if the CPU has AVX-512 VNNI, and VBMI to sort bytes. Thread-safe.
bool VnniIsUsable();

// Returns true if ScoreInt8Rows takes a query and a block whose |components| have these bounds.
bool KeysFitInt8Dots(float query_magnitude, float key_magnitude);

// Returns an upper bound on the error of a double sum of ScoreInt8Rows(). The magnitudes are upper
// bounds on the |components| of the query and of the key. `norms` must be at least |query| |key|.
double ScoreErrorInInt8(std::int64_t key_dim, float query_magnitude, float key_magnitude,
                        double norms);

// With float sums, ScoreInt8Rows() takes keys of at most kInt8FloatDimMax components. The error of
// a float sum is at most ScoreErrorInInt8() + kInt8FloatError * norms, with the same `norms`.
inline constexpr std::int64_t kInt8FloatDimMax = 1024;
inline constexpr double kInt8FloatError = 0x3.2p-24;

// Queries in the form that ScoreInt8Rows() takes. Several threads may read them, but not during
// Pack(). The next Pack() overwrites them, and reuses their buffer.
class DigitQueries {
 public:
  // Each queries[q] points to key_dim floats, for which KeysFitInt8Dots must hold. query_count is
  // in [1, kTileQueries].
  void Pack(const float* const* queries, int query_count, std::int64_t key_dim);

  int count() const { return count_; }
  std::int64_t key_dim() const { return key_dim_; }
  // The number of groups of four components. Zeros fill up the last group.
  std::int64_t group_count() const { return (key_dim_ + 3) / 4; }

  // Returns [group_count()][4 digits, the lowest first]. An element has one byte for each component
  // of the group: the digit plus 128.
  const std::uint32_t* digits(int query) const {
    return digits_.data() + static_cast<std::size_t>(query) * stride_;
  }
  // The fixed-point components of the query are multiples of this.
  float unit(int query) const { return units_[query]; }

 private:
  int count_ = 0;
  std::int64_t key_dim_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> digits_;
  std::array<float, kTileQueries> units_ = {};
};

// Sets sums[q * kScratchStride + r] to the dot product of query q and the key of row r, for every
// row r of `panels`. r counts from the block's first row. Component i of the query is multiplied by
// component first_dim + i of the key. The block must be INT8. Rows from block.row_count on have
// zero keys, so their sums are 0. ScoreErrorInInt8() bounds the error of a double sum. With
// DotUnit::kVnni, the call prefetches the part `fetched` while it computes.
void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, float* sums, const PanelPart& fetched = {});
void ScoreInt8Rows(DotUnit unit, const BlockView& block, PanelRange panels, std::int64_t first_dim,
                   const DigitQueries& queries, double* sums, const PanelPart& fetched = {});

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_INT8_SCORES_H_
