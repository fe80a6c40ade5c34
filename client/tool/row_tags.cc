#include "client/tool/row_tags.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/tool/exit_code.h"
#include "client/tool/word_list.h"

namespace softlookup::tool {
namespace {

using output::IsUtf8;
using output::Json;

constexpr char kNoId[] = "-";

// Removes a quoted label from the front of `line`, which must start with the quote. False if the
// label is not a JSON string.
bool ConsumeQuoted(absl::string_view* line, std::string* label) {
  std::size_t end = 1;
  while (end < line->size() && (*line)[end] != '"') end += (*line)[end] == '\\' ? 2 : 1;
  if (end >= line->size()) return false;
  const std::string quoted(line->substr(0, end + 1));
  const Json json = Json::parse(quoted, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_string()) return false;
  *label = json.get<std::string>();
  line->remove_prefix(quoted.size());
  return true;
}

// Removes the next label and the comma after it from `line`. `label` is empty between two commas.
// False if the label is malformed.
bool ConsumeLabel(absl::string_view* line, std::string* label) {
  *line = absl::StripLeadingAsciiWhitespace(*line);
  if (!absl::StartsWith(*line, "\"")) {
    const std::size_t end = std::min(line->find(','), line->size());
    *label = std::string(absl::StripTrailingAsciiWhitespace(line->substr(0, end)));
    line->remove_prefix(end);
  } else if (!ConsumeQuoted(line, label)) {
    return false;
  }
  *line = absl::StripLeadingAsciiWhitespace(*line);
  return line->empty() || absl::ConsumePrefix(line, ",");
}

// Writes `label` so that ConsumeLabel() reads it back: in quotes if necessary.
std::string LabelText(const std::string& label) {
  const auto special = [](char c) {
    return c == ',' || c == '"' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  };
  const bool plain = !label.empty() && std::none_of(label.begin(), label.end(), special) &&
                     absl::StripAsciiWhitespace(label) == label &&
                     !absl::StartsWith(label, kByteOrderMark);
  return plain ? label : Json(label).dump();
}

void CopyRows(const v1::Matrix& from, std::uint32_t begin, std::uint32_t end, v1::Matrix* to) {
  const std::size_t row_bytes = from.data().size() / from.rows();
  to->set_rows(end - begin);
  to->set_cols(from.cols());
  to->set_element_type(from.element_type());
  to->set_data(from.data().substr(begin * row_bytes, (end - begin) * row_bytes));
}

// Returns a request with the rows [begin, end) of `rows`.
v1::AppendRequest Slice(const v1::AppendRequest& rows, std::uint32_t begin, std::uint32_t end) {
  v1::AppendRequest slice;
  if (rows.has_keys()) CopyRows(rows.keys(), begin, end, slice.mutable_keys());
  if (rows.has_values()) CopyRows(rows.values(), begin, end, slice.mutable_values());
  if (rows.has_inputs()) CopyRows(rows.inputs(), begin, end, slice.mutable_inputs());
  if (rows.row_labels_size() > 0) {
    slice.mutable_row_labels()->Assign(rows.row_labels().begin() + begin,
                                       rows.row_labels().begin() + end);
  }
  if (rows.ids_size() > 0) {
    slice.mutable_ids()->Assign(rows.ids().begin() + begin, rows.ids().begin() + end);
  }
  return slice;
}

}  // namespace

v1::AppendRequest WithoutFirstRows(const v1::AppendRequest& rows, std::uint32_t count) {
  return Slice(rows, count, std::max(rows.keys().rows(), rows.inputs().rows()));
}

absl::StatusOr<RowTags> RowTags::Open(const std::string& ids_path, const std::string& labels_path) {
  RowTags tags;
  if (!ids_path.empty()) {
    CLIENT_ASSIGN_OR_RETURN(tags.ids_, ByteSource::Open(ids_path));
  }
  if (!labels_path.empty()) {
    CLIENT_ASSIGN_OR_RETURN(tags.labels_, ByteSource::Open(labels_path));
  }
  return tags;
}

absl::StatusOr<std::vector<v1::AppendRequest>> RowTags::Tag(std::uint32_t row_count,
                                                            v1::AppendRequest rows) {
  std::vector<std::optional<std::uint64_t>> ids;
  for (std::uint32_t row = 0; row < row_count; ++row, ++rows_read_) {
    CLIENT_ASSIGN_OR_RETURN(ids.emplace_back(), ReadId());
    if (labels_.has_value()) CLIENT_RETURN_IF_ERROR(ReadLabels(rows.add_row_labels()));
  }
  std::vector<v1::AppendRequest> requests;
  for (std::uint32_t begin = 0, end = 0; begin < row_count; begin = end) {
    while (end < row_count && ids[end].has_value() == ids[begin].has_value()) ++end;
    v1::AppendRequest& request = requests.emplace_back();
    if (end - begin == row_count) {
      request.Swap(&rows);
    } else {
      request = Slice(rows, begin, end);
    }
    if (!ids[begin].has_value()) continue;
    for (std::uint32_t row = begin; row < end; ++row) request.add_ids(*ids[row]);
  }
  return requests;
}

absl::StatusOr<std::optional<std::uint64_t>> RowTags::ReadId() {
  if (!ids_.has_value()) return std::nullopt;
  CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&*ids_, &line_));
  if (!read) return TooShort(*ids_);
  if (line_ == kNoId) return std::nullopt;
  std::uint64_t id;
  if (!absl::SimpleAtoi(line_, &id)) {
    return InputError(ids_->name(), absl::StrCat("line ", ids_->line_number(), ": \"", line_,
                                                 "\" is not an id: a whole number below 2^64, or ",
                                                 kNoId, " for a row without"));
  }
  return id;
}

absl::Status RowTags::ReadLabels(v1::RowLabels* labels) {
  CLIENT_ASSIGN_OR_RETURN(const bool read, labels_->ReadLine(&line_));
  if (!read) return TooShort(*labels_);
  if (!IsUtf8(line_)) {
    return InputError(labels_->name(),
                      absl::StrCat("line ", labels_->line_number(), ": is not UTF-8"));
  }
  absl::string_view line = line_;
  std::string label;
  while (!line.empty()) {
    if (!ConsumeLabel(&line, &label)) {
      return InputError(labels_->name(),
                        absl::StrCat("line ", labels_->line_number(),
                                     ": a label that starts with a quote must be a JSON string"));
    }
    if (!label.empty()) labels->add_labels(label);
  }
  return absl::OkStatus();
}

absl::Status RowTags::CheckAtEnd() {
  for (auto* source : {&ids_, &labels_}) {
    if (!source->has_value()) continue;
    CLIENT_ASSIGN_OR_RETURN(const bool more, NextWord(&**source, &line_));
    if (!more) continue;
    return InputError((*source)->name(), absl::StrCat("line ", (*source)->line_number(),
                                                      ": goes on after the last of ",
                                                      output::Counted(rows_read_, "row")));
  }
  return absl::OkStatus();
}

absl::Status RowTags::TooShort(const ByteSource& source) const {
  return InputError(source.name(), absl::StrCat("ends after ", output::Counted(rows_read_, "row"),
                                                ", the rows themselves go on"));
}

absl::StatusOr<RowTagsWriter> RowTagsWriter::Create(const std::string& ids_path,
                                                    const std::string& labels_path) {
  RowTagsWriter writer;
  CLIENT_ASSIGN_OR_RETURN(writer.ids_, Open(ids_path));
  CLIENT_ASSIGN_OR_RETURN(writer.labels_, Open(labels_path));
  return writer;
}

absl::Status RowTagsWriter::Write(const v1::Row& row) {
  errno = 0;
  if (ids_.has_value()) {
    ids_->stream << (row.has_id() ? absl::StrCat(row.id()) : kNoId) << "\n";
    CLIENT_RETURN_IF_ERROR(Check(*ids_));
  }
  if (labels_.has_value()) {
    const char* separator = "";
    for (const std::string& label : row.labels()) {
      labels_->stream << std::exchange(separator, ",") << LabelText(label);
    }
    labels_->stream << "\n";
    CLIENT_RETURN_IF_ERROR(Check(*labels_));
  }
  return absl::OkStatus();
}

absl::Status RowTagsWriter::Finish() {
  errno = 0;
  for (auto* file : {&ids_, &labels_}) {
    if (!file->has_value()) continue;
    (*file)->stream.close();
    CLIENT_RETURN_IF_ERROR(Check(**file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RowTagsWriter::File>> RowTagsWriter::Open(const std::string& path) {
  if (path.empty()) return std::nullopt;
  errno = 0;
  File file = {path, std::ofstream(path, std::ios::binary)};
  CLIENT_RETURN_IF_ERROR(Check(file));
  return file;
}

absl::Status RowTagsWriter::Check(const File& file) {
  if (file.stream) return absl::OkStatus();
  return InputError(file.path, absl::StrCat("cannot be written: ", std::strerror(errno)));
}

}  // namespace softlookup::tool
