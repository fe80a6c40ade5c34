#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"
#include "client/tool/replaced_file.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {

// A file of ids, or of labels, has a line for each row.
//
// A line of ids is a number, or "-" for a row without an id; blank lines are skipped. label_text.h
// describes a line of labels. Empty labels are left out; a blank line is a row without labels.

// Reads the ids and labels of rows from files and adds them to the rows, batch by batch. Errors are
// InputErrors that name the file, and the line if one is malformed.
class RowTags {
 public:
  // An empty path means no ids, or no labels.
  static absl::StatusOr<RowTags> Open(const std::string& ids_path, const std::string& labels_path);

  // Adds the ids and labels of the next lines to `rows`, which has `row_count` >= 1 rows. Returns
  // one or more requests that together hold the rows in order. There are several if some rows have
  // ids and others have none, because a request must have an id for each row or for none. Fails if
  // a file ends before the rows do, or if two of these rows have the same id, even if they would go
  // into different requests.
  absl::StatusOr<std::vector<v1::AppendRequest>> Tag(std::uint32_t row_count,
                                                     v1::AppendRequest rows);

  // Call this after the last row. Fails if a file still has a line that is not blank.
  absl::Status CheckAtEnd();

  // "ids" or "labels" if Tag() or CheckAtEnd() has failed because that file has too few or too many
  // lines. Any row tagged before may then have those of another row. Empty otherwise.
  std::string_view miscounted() const { return miscounted_; }

  // Names the file of ids, and if no line before it was blank, the line of the id of `row`, from 0:
  // "line 3 of ids.txt". Empty without ids.
  std::string IdPlace(std::uint64_t row) const;

 private:
  absl::StatusOr<std::optional<std::uint64_t>> ReadId();
  absl::Status ReadLabels(v1::RowLabels* labels);
  absl::Status TooShort(const ByteSource& source, std::string_view tags);

  std::optional<ByteSource> ids_;
  std::optional<ByteSource> labels_;
  std::uint64_t rows_read_ = 0;
  bool skipped_id_lines_ = false;  // Whether a line of ids was blank, so that lines are not rows.
  std::string labels_header_;      // The first line of labels, if it looks like a header.
  std::string_view miscounted_;
  std::string line_;
};

// Reads the files through and fails unless each has a line for each of `row_count` rows. An empty
// path is as for RowTags::Open(). Leaves out what can be read only once, such as standard input and
// pipes. Errors are InputErrors.
absl::Status CheckTagCounts(const std::string& ids_path, const std::string& labels_path,
                            std::uint64_t row_count);

// Returns `rows` without its first `count` rows. `rows` must have more than `count`.
v1::AppendRequest WithoutFirstRows(const v1::AppendRequest& rows, std::uint32_t count);

// Writes ids and labels of rows to files from which RowTags reads the same. They are ReplacedFiles:
// older files stay until Publish(). Errors are InputErrors.
class RowTagsWriter {
 public:
  // An empty path means no ids, or no labels.
  static absl::StatusOr<RowTagsWriter> Create(const std::string& ids_path,
                                              const std::string& labels_path);

  absl::Status Write(const v1::Row& row);

  // Closes the files. Call this once, after the last Write().
  absl::Status Finish();
  // Puts the files into their places. Call this once, after Finish().
  absl::Status Publish();

 private:
  std::optional<ReplacedFile> ids_;
  std::optional<ReplacedFile> labels_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_TAGS_H_
