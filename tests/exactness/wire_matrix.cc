#include "tests/exactness/wire_matrix.h"

#include <cstring>

namespace softlookup::exactness {

v1::Matrix MatrixOf(testing::Draw& draw, const std::vector<float>& floats, std::int64_t cols) {
  v1::Matrix matrix;
  matrix.set_rows(static_cast<std::uint32_t>(static_cast<std::int64_t>(floats.size()) / cols));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  if (draw.Chance(0.1)) {
    matrix.mutable_values()->Add(floats.begin(), floats.end());
  } else if (draw.Chance(0.1)) {
    const std::vector<double> doubles(floats.begin(), floats.end());
    matrix.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
    matrix.set_data(doubles.data(), doubles.size() * sizeof(double));
  } else {
    matrix.set_data(floats.data(), floats.size() * sizeof(float));
  }
  return matrix;
}

std::vector<float> FloatsOf(const v1::Matrix& matrix) {
  if (matrix.values_size() > 0) return {matrix.values().begin(), matrix.values().end()};
  if (matrix.element_type() == v1::ELEMENT_TYPE_FLOAT64) {
    std::vector<double> doubles(matrix.data().size() / sizeof(double));
    if (!doubles.empty()) std::memcpy(doubles.data(), matrix.data().data(), matrix.data().size());
    return {doubles.begin(), doubles.end()};
  }
  std::vector<float> floats(matrix.data().size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), matrix.data().data(), matrix.data().size());
  return floats;
}

}  // namespace softlookup::exactness
