#include "client/tool/resume_check.h"

#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {
namespace {

using output::Counted;

bool RoundsRows(const v1::Store& store) {
  return store.storage_type() != v1::ELEMENT_TYPE_UNSPECIFIED &&
         store.storage_type() != v1::ELEMENT_TYPE_FLOAT32;
}

// Returns the bytes of a row as the tool itself would send them. Unset unless `matrix` is one row
// of `dim` components.
std::optional<std::string> RowBytes(const v1::Matrix& matrix, std::uint32_t dim) {
  const absl::StatusOr<FloatMatrix> row = FloatMatrix::FromProto(matrix);
  v1::Matrix bytes;
  if (!row.ok() || row->rows != 1 || row->cols != dim) return std::nullopt;
  if (!FloatMatrixView(*row).ToProto(&bytes).ok()) return std::nullopt;
  return bytes.data();
}

// Whether row `row` of `matrix`, whose data is FLOAT32, has these bytes.
bool RowEquals(const v1::Matrix& matrix, std::uint32_t row, const std::string& bytes) {
  const absl::string_view data = matrix.data();
  const std::size_t begin = row * bytes.size();
  return begin + bytes.size() <= data.size() && data.substr(begin, bytes.size()) == bytes;
}

}  // namespace

ResumeCheck::ResumeCheck(const v1::Writer& writer, const v1::Store& store, absl::Duration deadline,
                         Client* client)
    : writer_(writer.writer()),
      store_(store.name()),
      sent_rows_(writer.last_sequence()),
      position_(writer.last_position()) {
  // The position 0 also means that the writer has written no row.
  if (sent_rows_ == 0 || position_ == 0 || RoundsRows(store)) return;
  v1::RowFilter filter;
  filter.set_begin(position_);
  filter.set_end(position_ + 1);
  ReadRowsOptions options;
  options.deadline = deadline;
  options.read_mask = {"position", "id", "key", "value"};
  v1::ReadRowsResponse answer;
  const absl::Status read = client->ReadRows(
      store_, filter,
      [&answer](const v1::ReadRowsResponse& page) {
        answer = page;
        return false;
      },
      options);
  if (!read.ok() || answer.rows_size() != 1 || answer.rows(0).position() != position_) return;
  const v1::Row& row = answer.rows(0);
  const std::optional<std::string> key = RowBytes(row.key(), store.key_dim());
  const std::optional<std::string> value = RowBytes(row.value(), store.value_dim());
  if (key.has_value() && value.has_value()) row_ = {*key, *value, row.has_id()};
}

void ResumeCheck::Look(const v1::AppendRequest& rows, std::uint64_t first_row) {
  if (!row_.has_value() || first_row >= sent_rows_) return;
  if (rows.has_inputs()) {
    row_.reset();
    return;
  }
  for (std::uint32_t i = 0; i < rows.keys().rows() && first_row + i < sent_rows_; ++i) {
    last_equals_ = RowEquals(rows.keys(), i, row_->key) && RowEquals(rows.values(), i, row_->value);
    any_equals_ = any_equals_ || last_equals_;
  }
  last_has_id_ = rows.ids_size() > 0;
}

absl::Status ResumeCheck::Check(std::string_view skip_flags) const {
  if (!row_.has_value()) return absl::OkStatus();
  const bool is_last = !last_has_id_ && !row_->has_id;
  if (is_last ? last_equals_ : any_equals_) return absl::OkStatus();
  return UsageError(
      absl::StrCat("the writer ", writer_, " has sent ", Counted(sent_rows_, "row"),
                   " before, but not of this input: ",
                   is_last ? absl::StrCat("its row ", sent_rows_ - 1, " (from 0) is not")
                           : absl::StrCat("none of its first ", Counted(sent_rows_, "row"), " is"),
                   " the last row that ", writer_, " appended, at position ", position_, " of ",
                   store_, "; give this input a writer of its own, or to append all but its first ",
                   Counted(sent_rows_, "row"), ", ", std::string(skip_flags), " ", sent_rows_,
                   " in place of --writer"));
}

}  // namespace softlookup::tool
