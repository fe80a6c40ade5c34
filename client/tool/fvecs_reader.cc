#include "client/tool/fvecs_reader.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

class FvecsReader : public RowReader {
 public:
  using RowReader::RowReader;

 private:
  absl::StatusOr<std::uint32_t> ReadRows(std::uint32_t rows_max,
                                         std::vector<float>* rows) override {
    std::uint32_t count = 0;
    for (; count < rows_max; ++count) {
      const std::uint64_t row = rows_read_ + count;
      std::uint32_t cols;
      CLIENT_ASSIGN_OR_RETURN(const std::size_t head, source_.Read(&cols, sizeof(cols)));
      if (head == 0) break;
      if (head < sizeof(cols)) return Truncated(row);
      CLIENT_RETURN_IF_ERROR(CheckColumns(absl::StrCat("row ", row, " (from 0)"), cols));
      const std::size_t row_bytes = columns_.count * sizeof(float);
      rows->resize(rows->size() + columns_.count);
      CLIENT_ASSIGN_OR_RETURN(
          const std::size_t body,
          source_.Read(rows->data() + rows->size() - columns_.count, row_bytes));
      if (body < row_bytes) return Truncated(row);
    }
    return count;
  }

  absl::Status Truncated(std::uint64_t row) const {
    return InputError(name(), absl::StrCat("ends inside row ", row, " (from 0)"));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowReader>> OpenFvecs(ByteSource source, Columns columns) {
  return std::make_unique<FvecsReader>(std::move(source), std::move(columns));
}

}  // namespace softlookup::tool
