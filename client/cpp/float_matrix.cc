#include "softlookup/float_matrix.h"

#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"

namespace softlookup {
namespace {

static_assert(std::endian::native == std::endian::little, "Matrix.data is little-endian");

template <typename To, typename From>
void CopyElements(const std::string& bytes, std::vector<To>* out) {
  if constexpr (std::is_same_v<To, From>) {
    if (!bytes.empty()) std::memcpy(out->data(), bytes.data(), bytes.size());
  } else {
    for (std::size_t i = 0; i < out->size(); ++i) {
      From element;
      std::memcpy(&element, bytes.data() + i * sizeof(From), sizeof(From));
      (*out)[i] = static_cast<To>(element);
    }
  }
}

template <typename To>
absl::StatusOr<std::vector<To>> Elements(const v1::Matrix& matrix) {
  const std::uint64_t count = std::uint64_t{matrix.rows()} * matrix.cols();
  if (matrix.values_size() > 0) {
    if (static_cast<std::uint64_t>(matrix.values_size()) != count) {
      return absl::InvalidArgumentError(absl::StrCat("a ", matrix.rows(), " x ", matrix.cols(),
                                                     " matrix has ", matrix.values_size(),
                                                     " values"));
    }
    return std::vector<To>(matrix.values().begin(), matrix.values().end());
  }
  std::uint64_t element_bytes = sizeof(float);
  switch (matrix.element_type()) {
    case v1::ELEMENT_TYPE_UNSPECIFIED:
    case v1::ELEMENT_TYPE_FLOAT32:
      break;
    case v1::ELEMENT_TYPE_FLOAT64:
      element_bytes = sizeof(double);
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a matrix has element type ", matrix.element_type()));
  }
  if (matrix.data().size() % element_bytes != 0 || matrix.data().size() / element_bytes != count) {
    return absl::InvalidArgumentError(absl::StrCat("a ", matrix.rows(), " x ", matrix.cols(),
                                                   " matrix has ", matrix.data().size(),
                                                   " bytes of data"));
  }
  std::vector<To> elements(count);
  if (element_bytes == sizeof(double)) {
    CopyElements<To, double>(matrix.data(), &elements);
  } else {
    CopyElements<To, float>(matrix.data(), &elements);
  }
  return elements;
}

}  // namespace

absl::StatusOr<FloatMatrix> FloatMatrix::FromProto(const v1::Matrix& matrix) {
  CLIENT_ASSIGN_OR_RETURN(std::vector<float> data, Elements<float>(matrix));
  return FloatMatrix{.rows = matrix.rows(), .cols = matrix.cols(), .data = std::move(data)};
}

absl::Status FloatMatrixView::ToProto(v1::Matrix* matrix) const {
  if (data.size() != std::uint64_t{rows} * cols) {
    return absl::InvalidArgumentError(absl::StrCat("a ", rows, " x ", cols, " matrix needs ",
                                                   std::uint64_t{rows} * cols, " elements, not ",
                                                   data.size()));
  }
  matrix->set_rows(rows);
  matrix->set_cols(cols);
  matrix->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  matrix->clear_values();
  matrix->mutable_data()->assign(reinterpret_cast<const char*>(data.data()),
                                 data.size() * sizeof(float));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> DoublesFromProto(const v1::Matrix& matrix) {
  return Elements<double>(matrix);
}

}  // namespace softlookup
