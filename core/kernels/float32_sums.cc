#include "core/kernels/float32_sums.h"

#include <cmath>
#include <cstddef>

namespace softlookup::kernels {

Float32Roundings::Float32Roundings(std::int64_t dim_count, bool is_fused)
    : whole_(dim_count / kRunDimsMax),
      of_whole_(SquaresOf(whole_ > 0 ? kRunDimsMax : 0, is_fused)),
      of_rest_(SquaresOf(dim_count % kRunDimsMax, is_fused)) {}

Float32Roundings::Squares Float32Roundings::SquaresOf(std::int64_t dim_count, bool is_fused) {
  Squares squares(static_cast<std::size_t>(dim_count));
  for (std::size_t sums_index = 0; sums_index < kFloat32Sums.size(); ++sums_index) {
    const Float32Sums sums = kFloat32Sums[sums_index];
    for (std::int64_t chain = 0; chain < dim_count; chain += sums.chain_dims) {
      const int levels = sums.Levels(chain / sums.run_dims * sums.run_dims, dim_count);
      const std::int64_t end = std::min(chain + sums.chain_dims, dim_count);
      for (std::int64_t i = chain; i < end; ++i) {
        // The first product of a chain is not added to anything.
        const std::int64_t own = is_fused ? end - i : std::min(end - i + 1, end - chain);
        const auto roundings = static_cast<double>(own + levels);
        squares[i][sums_index] = roundings * roundings;
      }
    }
  }
  return squares;
}

Float32ErrorNorms Float32Roundings::ErrorNormsOf(const float* query) const {
  Float32ErrorNorms norms = {};
  const auto add = [&norms](const float* terms, const Squares& squares) {
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const double square = static_cast<double>(terms[i]) * terms[i];
      for (std::size_t sums_index = 0; sums_index < norms.size(); ++sums_index)
        norms[sums_index] += squares[i][sums_index] * square;
    }
  };
  for (std::int64_t run = 0; run < whole_; ++run) add(query + run * kRunDimsMax, of_whole_);
  add(query + whole_ * kRunDimsMax, of_rest_);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace softlookup::kernels
