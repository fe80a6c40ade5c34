#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {

// Files of ids and of labels have a line for each row.
//
// A line of ids is a number, or "-" for a row without an id; blank lines are skipped. A line of
// labels has them between commas, without the white space around them; a blank line is a row
// without labels. A label in quotes is a JSON string, which can hold all that a label can: commas,
// line ends, white space at its ends.

// Reads ids and labels of rows in step with the rows. Errors are InputErrors that name the file and
// the line.
class RowTags {
 public:
  // An empty path: no ids, or no labels.
  static absl::StatusOr<RowTags> Open(const std::string& ids_path, const std::string& labels_path);

  // Gives `rows`, of `row_count` >= 1 rows, what the next lines say. As a request has an id for
  // each of its rows or for none, several may come back: together they are the rows, in order.
  // Fails if a file ends before.
  absl::StatusOr<std::vector<v1::AppendRequest>> Tag(std::uint32_t row_count,
                                                     v1::AppendRequest rows);

  // Fails if a file goes on behind the last row.
  absl::Status CheckAtEnd();

 private:
  absl::StatusOr<std::optional<std::uint64_t>> ReadId();
  absl::Status ReadLabels(v1::RowLabels* labels);
  absl::Status TooShort(const ByteSource& source) const;

  std::optional<ByteSource> ids_;
  std::optional<ByteSource> labels_;
  std::uint64_t rows_read_ = 0;
  std::string line_;
};

// `rows` but its first `count`, of which it has more.
v1::AppendRequest WithoutFirstRows(const v1::AppendRequest& rows, std::uint32_t count);

// Writes ids and labels of rows for RowTags to read back the same. Errors are InputErrors.
class RowTagsWriter {
 public:
  // An empty path: no ids, or no labels.
  static absl::StatusOr<RowTagsWriter> Create(const std::string& ids_path,
                                              const std::string& labels_path);

  absl::Status Write(const v1::Row& row);

  // Call once, last.
  absl::Status Finish();

 private:
  struct File {
    std::string path;
    std::ofstream stream;
  };

  static absl::StatusOr<std::optional<File>> Open(const std::string& path);
  static absl::Status Check(const File& file);

  std::optional<File> ids_;
  std::optional<File> labels_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
