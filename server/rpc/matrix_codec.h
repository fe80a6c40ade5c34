#ifndef SOFTLOOKUP_SERVER_RPC_MATRIX_CODEC_H_
#define SOFTLOOKUP_SERVER_RPC_MATRIX_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/matrix_view.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// A matrix from a message, as float32. Points into the message if the elements there are float32
// and aligned. Otherwise holds a copy, converted to float32.
class DecodedMatrix {
 public:
  // Valid while the message and this object live and do not move.
  MatrixView view() const;

 private:
  friend absl::StatusOr<DecodedMatrix> DecodeMatrix(const std::string& field,
                                                    const v1::Matrix& matrix);
  const float* in_message_ = nullptr;
  std::vector<float> converted_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
};

// Decodes a matrix: its `values`, or its `data` of FLOAT32 (the default), FLOAT64 or BFLOAT16
// elements. INVALID_ARGUMENT that names `field` if:
// - both `data` and `values` are set, or neither is set and rows * cols > 0,
// - the number of elements is not rows * cols,
// - `values` is not set, and the element type is none of these three,
// - a finite FLOAT64 element is beyond float32's range.
absl::StatusOr<DecodedMatrix> DecodeMatrix(const std::string& field, const v1::Matrix& matrix);

// Returns an INVALID_MATRIX error with `message` about `field`.
absl::Status InvalidMatrix(const std::string& field, absl::string_view message);

// Sets `matrix` to `rows` x `cols` FLOAT32 elements: in `values` if `as_numbers`, else in `data`.
void SetFloat32(const std::vector<float>& floats, std::int64_t rows, std::int64_t cols,
                bool as_numbers, v1::Matrix& matrix);
// Sets `matrix` to one row of FLOAT64 elements.
void SetFloat64Row(const std::vector<double>& row, v1::Matrix& matrix);

// Converts a number of the wire to an enumeration with the values 0 to `largest`. INVALID_OPTION
// about `field` if there is no such value.
template <typename Enum>
absl::StatusOr<Enum> DecodeEnum(const std::string& field, int value, Enum largest) {
  if (value < 0 || value > static_cast<int>(largest)) {
    return InvalidOption(field, absl::StrCat("there is no value ", value));
  }
  return static_cast<Enum>(value);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MATRIX_CODEC_H_
