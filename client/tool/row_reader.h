#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// How many columns a file's rows must have, and what requires that number, such as {128,
// "key_dim"}. Error messages name `meaning`. If `count` is 0, the file's header or first row
// determines it.
struct Columns {
  std::uint32_t count;
  std::string meaning;
};

// Reads rows of float32 from a file in batches. Keeps only one batch of a long file at a time,
// except for .npy files in Fortran order. Errors are InputErrors that name the file. An error about
// one number also names its column, and its row or line.
class RowReader {
 public:
  RowReader(ByteSource source, Columns columns)
      : source_(std::move(source)), columns_(std::move(columns)) {}
  virtual ~RowReader() = default;

  // Replaces `rows` by the next `rows_max` rows, fewer only at the end. Returns the number of rows.
  // Fails if a number is not finite.
  absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, std::vector<float>* rows);

  // Lines for people, such as that a header was skipped, go to `notes`, which must outlive this.
  // Null, as it is at first: to nowhere.
  void set_notes(std::ostream* notes) { notes_ = notes; }

  const std::string& name() const { return source_.name(); }

  // Number of rows in the file, if its header tells it.
  virtual std::optional<std::uint64_t> row_count() const { return std::nullopt; }

  // Number of columns of a row. If the caller set none, 0 until a header or row determines it.
  std::uint32_t cols() const { return columns_.count; }

 protected:
  // Appends the next `rows_max` rows to `rows`, which is empty. Appends fewer only at the end.
  // Returns the number of rows.
  virtual absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                                 std::vector<float>* rows) = 0;

  // Fails unless `count` is the number of columns that rows must have. If no number is set yet,
  // sets it to `count`. `where` is for messages: "line 3", or empty.
  absl::Status CheckColumns(const std::string& where, std::uint64_t count);

  // Prints a line about the file for people.
  void Note(const std::string& text) const;

  ByteSource source_;
  Columns columns_;
  std::uint64_t rows_read_ = 0;  // By earlier calls of Read().

 private:
  std::ostream* notes_ = nullptr;
};

// Returns the formats that --format may name.
const std::vector<std::string>& RowFormats();

// Opens a file in the format that its ending names, or standard input ("-") in `format`. InputError
// if the ending is not one of RowFormats(), or if `path` is "-" and `format` is empty. `notes` is
// as for RowReader::set_notes().
absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const std::string& path,
                                                    const std::string& format, Columns columns,
                                                    std::ostream* notes = nullptr);

// Reads a whole file into a matrix. Parameters and errors are as for OpenRows() and RowReader.
absl::StatusOr<FloatMatrix> ReadMatrix(const std::string& path, const std::string& format,
                                       Columns columns, std::ostream* notes = nullptr);

// Returns the columns that inputs must have for the projection of `store`. UsageError if `store`
// has no projection.
absl::StatusOr<Columns> InputColumns(const v1::Store& store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_
