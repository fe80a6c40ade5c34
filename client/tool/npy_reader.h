#ifndef SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// Reads a NumPy array of little-endian float16, float32 or float64, integers or booleans, with one
// or two dimensions. Rounds the elements to float32. Holds all elements of an array in Fortran
// order at once, because each of its rows is spread over the file.
//
// An array with one dimension is a column if `columns` asks for one column, and a row if it asks
// for more. It is refused if `columns` accepts any number.
absl::StatusOr<std::unique_ptr<RowReader>> OpenNpy(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
