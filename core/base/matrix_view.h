#ifndef SOFTLOOKUP_CORE_BASE_MATRIX_VIEW_H_
#define SOFTLOOKUP_CORE_BASE_MATRIX_VIEW_H_

#include <cstdint>

namespace softlookup {

// A row-major [rows, cols] matrix of float32. The view does not own the data.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  const float* row(std::int64_t index) const { return data + index * cols; }
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_MATRIX_VIEW_H_
