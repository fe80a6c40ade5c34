#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {

// Ids and labels of rows to append, read in step with the rows: a line a row. An id is a number,
// blank lines between ids are skipped; labels stand between commas, a blank line is a row without.
// Errors are InputErrors that name the file and the line.
class RowTags {
 public:
  // An empty path: no ids, or no labels.
  static absl::StatusOr<RowTags> Open(const std::string& ids_path, const std::string& labels_path);

  // Gives `request`, of `row_count` rows, what the next lines say. Fails if a file ends before.
  absl::Status Read(std::uint32_t row_count, v1::AppendRequest* request);

  // Fails if a file goes on behind the last row.
  absl::Status CheckAtEnd();

 private:
  absl::Status TooShort(const ByteSource& source) const;
  absl::Status TooLong(const ByteSource& source) const;

  std::optional<ByteSource> ids_;
  std::optional<ByteSource> labels_;
  std::uint64_t rows_read_ = 0;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
