#ifndef SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_
#define SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace softlookup::kernels {

// How a float32 sum over components is formed. A chain adds chain_dims terms one after the other.
// The chains of a run are added in pairs, by a binary tree. Runs are added in float64. Longer
// chains take less time, and round more.
struct Float32Sums {
  std::int64_t chain_dims = 0;
  std::int64_t run_dims = 0;  // chain_dims times a power of two.

  // Returns the number of levels of the tree of a run, whose first component is `run`, in a sum of
  // dim_count terms.
  constexpr int Levels(std::int64_t run, std::int64_t dim_count) const {
    const std::int64_t dims = std::min(run_dims, dim_count - run);
    const std::int64_t chains = (dims + chain_dims - 1) / chain_dims;
    return std::bit_width(static_cast<std::uint64_t>(chains - 1));
  }
  // Returns the most roundings of a product: its own, one for its addition and for that of each
  // later term in its chain, and one for each level of the tree. The first term of a chain is not
  // added to anything.
  constexpr std::int64_t Roundings(std::int64_t dim_count) const {
    return std::min(chain_dims, dim_count) + Levels(0, dim_count);
  }
};

// The ways to choose from, in the order of the time they take. kRunDimsMax is a multiple of each
// run.
inline constexpr std::array<Float32Sums, 4> kFloat32Sums = {
    {{40, 160}, {10, 160}, {5, 160}, {5, 10}}};
inline constexpr std::int64_t kRunDimsMax = 160;

// For each way, e such that the sum of products of a query q and a key k has an error of at most
// 2^-24 e |k|. The roundings r_i of a term bound its error by 2^-24 r_i |q_i k_i|. The sum of these
// bounds is at most 2^-24 |r q| |k|, by Cauchy and Schwarz. Runs must stay in float32's range.
using Float32ErrorNorms = std::array<double, kFloat32Sums.size()>;

// The roundings of each term of sums of `dim_count` products.
class Float32Roundings {
 public:
  // `is_fused`: whether a product and its addition are rounded as one. If both are rounded, a term
  // has one rounding more.
  Float32Roundings(std::int64_t dim_count, bool is_fused);

  // `query` points to dim_count components.
  Float32ErrorNorms ErrorNormsOf(const float* query) const;

 private:
  // By term: for each way, r_i^2.
  using Squares = std::vector<Float32ErrorNorms>;

  // Returns the squares of the last dim_count terms of a sum, which are at most kRunDimsMax.
  static Squares SquaresOf(std::int64_t dim_count, bool is_fused);

  // A sum consists of whole_ groups of kRunDimsMax terms, which all have the same roundings, and a
  // rest.
  const std::int64_t whole_;
  const Squares of_whole_;
  const Squares of_rest_;
};

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_FLOAT32_SUMS_H_
