#ifndef SOFTLOOKUP_CLIENT_CPP_MATRIX_FIELD_H_
#define SOFTLOOKUP_CLIENT_CPP_MATRIX_FIELD_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "softlookup/float_matrix.h"

namespace softlookup::client_internal {

// Copies `view` to `matrix`, a field of a request whose name is `field`. An error of
// FloatMatrixView::ToProto() begins with this name, as the server's errors of fields do.
inline absl::Status SetMatrix(std::string_view field, FloatMatrixView view, v1::Matrix* matrix) {
  absl::Status set = view.ToProto(matrix);
  if (set.ok()) return set;
  return absl::Status(set.code(), absl::StrCat(std::string(field), ": ", set.message()));
}

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_MATRIX_FIELD_H_
