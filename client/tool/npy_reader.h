#ifndef SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// Reads a NumPy array of little-endian float16, float32 or float64, integers or booleans, with one
// or two dimensions. Rounds the elements to float32. Keeps all elements of an array in Fortran
// order at once, because the elements of each row are spread over the file.
//
// An array with one dimension is a column if `columns.count` is 1, and a row if it is more. If
// `columns.count` is 0, such an array is refused, because it could be either.
absl::StatusOr<std::unique_ptr<RowReader>> OpenNpy(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
