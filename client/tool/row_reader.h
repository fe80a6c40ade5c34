#ifndef SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// The columns that a file's rows must have, and what says so, for messages: {128, "key_dim"}. With
// 0, a file has as many as its first row, or its header, says.
struct Columns {
  std::uint32_t count;
  std::string meaning;
};

// Rows of float32 from a file, a batch at a time, so that a file of any length passes through a
// bounded memory. Errors are InputErrors that name the file, the row or line, and the column.
class RowReader {
 public:
  RowReader(ByteSource source, Columns columns)
      : source_(std::move(source)), columns_(std::move(columns)) {}
  virtual ~RowReader() = default;

  // Replaces `rows` by the next `rows_max` rows, fewer only at the end; returns how many. Fails at
  // a number that is not finite.
  absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, std::vector<float>* rows);

  const std::string& name() const { return source_.name(); }

  // How many rows there are, where a header tells before they are read.
  virtual std::optional<std::uint64_t> row_count() const { return std::nullopt; }

  // Columns of a row; 0 until a header or a row tells them if the caller set none.
  std::uint32_t cols() const { return columns_.count; }

 protected:
  // As Read(), into an empty `rows`.
  virtual absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                                 std::vector<float>* rows) = 0;

  // Fails if rows of `count` columns are not what is needed; if nothing is, they are from now on.
  // `where`: "line 3", or empty.
  absl::Status CheckColumns(const std::string& where, std::uint64_t count);

  ByteSource source_;
  Columns columns_;
  std::uint64_t rows_read_ = 0;  // By earlier calls.
};

// What --format may name.
const std::vector<std::string>& RowFormats();

// The format that the ending of `path` names; `format` where it names none ("-").
absl::StatusOr<std::unique_ptr<RowReader>> OpenRows(const std::string& path,
                                                    const std::string& format, Columns columns);

// The whole file.
absl::StatusOr<FloatMatrix> ReadMatrix(const std::string& path, const std::string& format,
                                       Columns columns);

// Those of the inputs that the projection of `store` takes; a UsageError if it has none.
absl::StatusOr<Columns> InputColumns(const v1::Store& store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ROW_READER_H_
