#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_PRINTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_PRINTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/tool/command.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {

// The fields of a row in the order of printing: "position", "id", "labels", "key", "value".
const std::vector<std::string>& RowFieldNames();

// Rows to print.
struct RowListing {
  std::string store;
  std::vector<std::string> fields;  // Those of RowFieldNames() to print.
  bool all_fields = true;           // False: the user named the fields.
  std::uint64_t revision = 0;
  std::vector<v1::Row> rows;
  bool more = false;  // Further rows follow these.
};

// Prints a table with a column per field, or with -o json
// {"store", "revision", "rows": [{"position", "id"?, "labels": [...], "key": [...],
//  "value": [...]}], "more"}
// with only the fields in `listing.fields`. Columns that the terminal has no room for are hidden if
// `listing.all_fields` is set. Fails if a matrix is malformed.
absl::Status PrintRows(const RowListing& listing, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_PRINTER_H_
