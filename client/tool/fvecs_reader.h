#ifndef SOFTLOOKUP_CLIENT_TOOL_FVECS_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_FVECS_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// Reads .fvecs: per row an int32 with the number of columns, then that many float32, little-endian.
absl::StatusOr<std::unique_ptr<RowReader>> OpenFvecs(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_FVECS_READER_H_
