#ifndef SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_
#define SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace softlookup::kernels {

// How a float32 sum over components is formed. A component adds one term: a product or a square. A
// chain is chain_dims neighbouring terms, which are added one after the other. A run is run_dims
// neighbouring terms. Its chains are added in pairs, by a binary tree. The sums of runs are added
// in float64. The last chain and the last run may be shorter. Longer chains take less time, and
// round more.
struct Float32Sums {
  std::int64_t chain_dims = 0;
  std::int64_t run_dims = 0;  // chain_dims times a power of two.

  // Returns the number of levels in the tree of the run that begins at component `run`, in a sum of
  // dim_count terms.
  constexpr int Levels(std::int64_t run, std::int64_t dim_count) const {
    const std::int64_t dims = std::min(run_dims, dim_count - run);
    const std::int64_t chains = (dims + chain_dims - 1) / chain_dims;
    return std::bit_width(static_cast<std::uint64_t>(chains - 1));
  }
  // Returns the largest number of float32 roundings that a product in the sum goes through. The
  // product itself is rounded. Its addition to its chain is rounded, unless it is the chain's
  // first. Each later term of its chain and each level of the tree rounds once more.
  constexpr std::int64_t Roundings(std::int64_t dim_count) const {
    return std::min(chain_dims, dim_count) + Levels(0, dim_count);
  }
};

// The ways to form sums that a scan chooses from, the fastest and least exact first. kRunDimsMax is
// a multiple of the run_dims of each.
inline constexpr std::array<Float32Sums, 4> kFloat32Sums = {
    {{40, 160}, {10, 160}, {5, 160}, {5, 10}}};
inline constexpr std::int64_t kRunDimsMax = 160;

// For each of kFloat32Sums, a number e: the sum of products of a query q and a key k has an error
// of at most 2^-24 e |k|. If term i goes through r_i roundings, its error is at most
// 2^-24 r_i |q_i k_i|. By Cauchy and Schwarz, the sum of these errors is at most 2^-24 |r q| |k|,
// where r q has the components r_i q_i. So e is |r q|. This holds if the sums of runs stay in
// float32's range.
using Float32ErrorNorms = std::array<double, kFloat32Sums.size()>;

// Bounds the errors of float32 sums of `dim_count` products, by the roundings of each term.
class Float32Roundings {
 public:
  // `is_fused` says whether the CPU rounds a product and its addition as one, as FusesMultiplyAdds
  // returns. If it rounds both, all terms but the first of each chain have one rounding more.
  Float32Roundings(std::int64_t dim_count, bool is_fused);

  // `query` points to dim_count components.
  Float32ErrorNorms ErrorNormsOf(const float* query) const;

 private:
  // squares[i][sums_index] is the r_i^2 of term i for kFloat32Sums[sums_index].
  using Squares = std::vector<Float32ErrorNorms>;

  // Returns the squares for `dim_count` terms: those of a whole group, or those of the rest.
  static Squares SquaresOf(std::int64_t dim_count, bool is_fused);

  // A sum consists of whole_ groups of kRunDimsMax terms, which all have the same roundings, and a
  // shorter rest.
  const std::int64_t whole_;
  const Squares of_whole_;
  const Squares of_rest_;
};

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_
