#ifndef SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// Text: a row a line, numbers separated by commas or white space. Blank lines and what follows a
// "#" are skipped, and so is a first line of words, in which no field is a number.
absl::StatusOr<std::unique_ptr<RowReader>> OpenCsv(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_
