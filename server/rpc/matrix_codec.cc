#include "server/rpc/matrix_codec.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup::server {
namespace {

static_assert(std::endian::native == std::endian::little, "The wire is little-endian");

template <typename T>
T ElementAt(const std::string& data, std::int64_t index) {
  T element;
  std::memcpy(&element, data.data() + index * sizeof(T), sizeof(T));
  return element;
}

// The bytes of one element of `data`, or 0 for a type that a matrix may not have.
std::int64_t ElementBytes(v1::ElementType type) {
  switch (type) {
    case v1::ELEMENT_TYPE_UNSPECIFIED:
    case v1::ELEMENT_TYPE_FLOAT32:
      return 4;
    case v1::ELEMENT_TYPE_FLOAT64:
      return 8;
    case v1::ELEMENT_TYPE_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

absl::Status InvalidMatrix(const std::string& field, absl::string_view message) {
  return MakeError(reasons::kInvalidMatrix, absl::StrCat(field, ": ", message), {{"field", field}});
}

MatrixView DecodedMatrix::view() const {
  return {.data = in_message_ != nullptr ? in_message_ : converted_.data(),
          .rows = rows_,
          .cols = cols_};
}

absl::StatusOr<DecodedMatrix> DecodeMatrix(const std::string& field, const v1::Matrix& matrix) {
  DecodedMatrix decoded;
  decoded.rows_ = matrix.rows();
  decoded.cols_ = matrix.cols();
  // Cannot overflow, since both factors are below 2^32.
  const std::uint64_t count = std::uint64_t{matrix.rows()} * matrix.cols();
  const std::string& data = matrix.data();
  if (!data.empty() && matrix.values_size() > 0) {
    return InvalidMatrix(field, "data and values are both set; set one of them");
  }
  if (matrix.values_size() > 0) {
    if (static_cast<std::uint64_t>(matrix.values_size()) != count) {
      return InvalidMatrix(
          field, absl::StrCat("values has ", matrix.values_size(), " numbers, but ", matrix.rows(),
                              " x ", matrix.cols(), " are ", count));
    }
    decoded.in_message_ = matrix.values().data();
    return decoded;
  }
  const std::int64_t element_bytes = ElementBytes(matrix.element_type());
  if (element_bytes == 0) {
    return InvalidMatrix(field, "element_type: a matrix is FLOAT32, FLOAT64 or BFLOAT16");
  }
  if (data.empty() && count > 0) {
    return InvalidMatrix(field, absl::StrCat("neither data nor values is set, but it is ",
                                             matrix.rows(), " x ", matrix.cols()));
  }
  // Divides, since count * element_bytes may overflow.
  if (data.size() % element_bytes != 0 || data.size() / element_bytes != count) {
    return InvalidMatrix(
        field, absl::StrCat("data has ", data.size(), " bytes, but ", matrix.rows(), " x ",
                            matrix.cols(), " elements of ", element_bytes, " bytes are needed"));
  }
  if (element_bytes == 4) {
    if (reinterpret_cast<std::uintptr_t>(data.data()) % alignof(float) == 0) {
      decoded.in_message_ = reinterpret_cast<const float*>(data.data());
    } else {
      decoded.converted_.resize(count);
      std::memcpy(decoded.converted_.data(), data.data(), data.size());
    }
    return decoded;
  }
  decoded.converted_.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (element_bytes == 2) {  // A BFLOAT16 is the upper half of a float32.
      decoded.converted_[i] =
          std::bit_cast<float>(static_cast<std::uint32_t>(ElementAt<std::uint16_t>(data, i)) << 16);
      continue;
    }
    const double element = ElementAt<double>(data, i);
    decoded.converted_[i] = static_cast<float>(element);
    if (std::isfinite(element) && !std::isfinite(decoded.converted_[i])) {
      return MakeError(
          reasons::kNonFiniteValue,
          absl::StrCat(field, ": row ", i / matrix.cols(), ", column ", i % matrix.cols(), " is ",
                       element, ", beyond the range of float32"),
          {{"field", field},
           {"row", absl::StrCat(i / matrix.cols())},
           {"column", absl::StrCat(i % matrix.cols())}});
    }
  }
  return decoded;
}

void SetFloat32(const std::vector<float>& floats, std::int64_t rows, std::int64_t cols,
                bool as_numbers, v1::Matrix& matrix) {
  matrix.set_rows(static_cast<std::uint32_t>(rows));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  if (as_numbers) {
    matrix.mutable_values()->Add(floats.begin(), floats.end());
  } else {
    matrix.set_data(floats.data(), floats.size() * sizeof(float));
  }
}

void SetFloat64Row(const std::vector<double>& row, v1::Matrix& matrix) {
  matrix.set_rows(1);
  matrix.set_cols(static_cast<std::uint32_t>(row.size()));
  matrix.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  matrix.set_data(row.data(), row.size() * sizeof(double));
}

}  // namespace softlookup::server
