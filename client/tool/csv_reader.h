#ifndef SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/tool/row_reader.h"

namespace softlookup::tool {

// Reads text with one row per line, numbers separated by commas or white space. Skips blank lines,
// and in any line the text from "#" on. The first line that is left is skipped, too, if it is a
// header, and noted. A header has a letter, and none of its fields is a number or begins with a
// number and a semicolon.
absl::StatusOr<std::unique_ptr<RowReader>> OpenCsv(ByteSource source, Columns columns);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CSV_READER_H_
