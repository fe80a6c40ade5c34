#ifndef SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// A NumPy array of little-endian float32 or float64 in C order, with two dimensions, or with one: a
// column where one column is asked for, a single row where more are, and refused where any will do.
absl::StatusOr<std::unique_ptr<RowReader>> OpenNpy(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NPY_READER_H_
