#ifndef SOFTLOOKUP_FLOAT_MATRIX_H_
#define SOFTLOOKUP_FLOAT_MATRIX_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/v1/matrix.pb.h"

namespace softlookup {

// A row-major matrix of float32 that owns its elements.
struct FloatMatrix {
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::vector<float> data;  // [rows x cols].

  // `r` must be < rows. The span is valid until `data` changes.
  absl::Span<const float> Row(std::uint32_t r) const {
    return absl::MakeConstSpan(data).subspan(std::size_t{r} * cols, cols);
  }

  // Reads the `values` of `matrix` if it has any, else its FLOAT32 or FLOAT64 `data`. Rounds
  // FLOAT64 to the nearest float32. InvalidArgument if the number of elements is not rows * cols,
  // or if `data` has another element type.
  static absl::StatusOr<FloatMatrix> FromProto(const v1::Matrix& matrix);
};

// A row-major matrix of float32 that does not own its elements. They must outlive the view.
struct FloatMatrixView {
  absl::Span<const float> data;  // [rows x cols].
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;

  FloatMatrixView() = default;
  FloatMatrixView(absl::Span<const float> data, std::uint32_t rows, std::uint32_t cols)
      : data(data), rows(rows), cols(cols) {}
  FloatMatrixView(const FloatMatrix& matrix)  // NOLINT(google-explicit-constructor)
      : FloatMatrixView(matrix.data, matrix.rows, matrix.cols) {}

  // Copies the view to `matrix`, whose `data` is then FLOAT32. InvalidArgument if the view does not
  // hold rows * cols elements.
  absl::Status ToProto(v1::Matrix* matrix) const;
};

// Returns the elements of a matrix as doubles, without rounding, such as the FLOAT64 matrices of a
// Memory. The errors are those of FloatMatrix::FromProto().
absl::StatusOr<std::vector<double>> DoublesFromProto(const v1::Matrix& matrix);

}  // namespace softlookup

#endif  // SOFTLOOKUP_FLOAT_MATRIX_H_
