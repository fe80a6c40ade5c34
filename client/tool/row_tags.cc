#include "client/tool/row_tags.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/tool/exit_code.h"
#include "client/tool/label_text.h"
#include "client/tool/word_list.h"

namespace softlookup::tool {
namespace {

using output::IsUtf8;

constexpr char kNoId[] = "-";
constexpr char kIdTags[] = "ids";
constexpr char kLabelTags[] = "labels";

// Whether a line of ids or labels looks like the name of its column.
bool NamesATag(const std::string& line) {
  static const auto* const names = new std::set<std::string>{
      "class", "id", "ids", "label", "labels", "name", "names", "tag", "tags"};
  if (!IsUtf8(line)) return false;
  const std::optional<std::vector<std::string>> fields = SplitLabels(line);
  return fields.has_value() && fields->size() == 1 &&
         names->count(absl::AsciiStrToLower(fields->front())) > 0;
}

std::string HeaderNote(const std::string& header) {
  return absl::StrCat("; its first line, \"", cli::Excerpt(header),
                      "\", looks like a header, which must go");
}

// Fails unless the file has a line for each of `row_count` rows, by the rules of row_tags.h.
absl::Status CheckTagCount(const std::string& path, std::string_view tags,
                           std::uint64_t row_count) {
  // A pipe would have nothing left for the rows.
  std::error_code error;
  if (path.empty() || path == "-" || !std::filesystem::is_regular_file(path, error)) {
    return absl::OkStatus();
  }
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::uint64_t filled = 0;       // Lines that are not blank.
  std::uint64_t last_filled = 0;  // Number of the last one of them, from 1.
  std::string header;             // The first line, if it looks like a header.
  std::string line;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source, &line));
    if (!read) break;
    last_filled = source.line_number();
    ++filled;
    if (last_filled == 1 && NamesATag(line)) header = line;
  }
  const std::uint64_t lines = source.line_number();
  // Labels may be followed by blank lines, but behind a header these are rows without labels.
  const bool is_ids = tags == kIdTags;
  const std::uint64_t with_header = is_ids ? filled : lines;
  const bool has_header = !header.empty() && with_header == row_count + 1;
  const bool fits = is_ids ? filled == row_count : lines >= row_count && last_filled <= row_count;
  if (fits && !has_header) return absl::OkStatus();
  const std::uint64_t count = is_ids ? filled : last_filled > row_count ? last_filled : lines;
  return InputError(
      path, absl::StrCat("has ", output::Counted(count, "line"), " of ", std::string(tags),
                         is_ids && filled < lines ? " that are not blank" : "",
                         ", but the input has ", output::Counted(row_count, "row"),
                         has_header ? HeaderNote(header) : "; it must have a line for each row"));
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

absl::Status CheckTagCounts(const std::string& ids_path, const std::string& labels_path,
                            std::uint64_t row_count) {
  CLIENT_RETURN_IF_ERROR(CheckTagCount(ids_path, kIdTags, row_count));
  return CheckTagCount(labels_path, kLabelTags, row_count);
}

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
  std::unordered_map<std::uint64_t, std::uint64_t> lines;  // By id.
  for (std::uint32_t row = 0; row < row_count; ++row, ++rows_read_) {
    CLIENT_ASSIGN_OR_RETURN(ids.emplace_back(), ReadId());
    if (const std::optional<std::uint64_t> id = ids.back(); id.has_value()) {
      const auto [first, is_new] = lines.emplace(*id, ids_->line_number());
      if (!is_new) {
        return InputError(ids_->name(), absl::StrCat("line ", ids_->line_number(), ": the id ", *id,
                                                     " is that of line ", first->second, ", too"));
      }
    }
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
  if (!read) return TooShort(*ids_, kIdTags);
  skipped_id_lines_ = skipped_id_lines_ || ids_->line_number() != rows_read_ + 1;
  if (line_ == kNoId) return std::nullopt;
  std::uint64_t id;
  if (!absl::SimpleAtoi(line_, &id)) {
    return InputError(ids_->name(),
                      absl::StrCat("line ", ids_->line_number(), ": \"", cli::Excerpt(line_),
                                   "\" is not an id: a whole number below 2^64, or ", kNoId,
                                   " for a row without"));
  }
  return id;
}

absl::Status RowTags::ReadLabels(v1::RowLabels* labels) {
  CLIENT_ASSIGN_OR_RETURN(const bool read, labels_->ReadLine(&line_));
  if (!read) return TooShort(*labels_, kLabelTags);
  if (labels_->line_number() == 1 && NamesATag(line_)) labels_header_ = line_;
  if (!IsUtf8(line_)) {
    return InputError(labels_->name(),
                      absl::StrCat("line ", labels_->line_number(), ": is not UTF-8"));
  }
  const std::optional<std::vector<std::string>> found = SplitLabels(line_);
  if (!found.has_value()) {
    return InputError(labels_->name(),
                      absl::StrCat("line ", labels_->line_number(), ": ", kQuotedLabelRule));
  }
  for (const std::string& label : *found) {
    if (!label.empty()) labels->add_labels(label);
  }
  return absl::OkStatus();
}

absl::Status RowTags::CheckAtEnd() {
  for (auto* source : {&ids_, &labels_}) {
    if (!source->has_value()) continue;
    CLIENT_ASSIGN_OR_RETURN(const bool more, NextWord(&**source, &line_));
    if (!more) continue;
    miscounted_ = source == &ids_ ? kIdTags : kLabelTags;
    const bool has_header = source == &labels_ && !labels_header_.empty();
    return InputError(
        (*source)->name(),
        absl::StrCat("line ", (*source)->line_number(), ": goes on after the last of ",
                     output::Counted(rows_read_, "row"),
                     has_header ? HeaderNote(labels_header_) : ""));
  }
  return absl::OkStatus();
}

std::string RowTags::IdPlace(std::uint64_t row) const {
  if (!ids_.has_value()) return "";
  return absl::StrCat(skipped_id_lines_ ? "" : absl::StrCat("line ", row + 1, " of "),
                      ids_->name());
}

absl::Status RowTags::TooShort(const ByteSource& source, std::string_view tags) {
  miscounted_ = tags;
  return InputError(source.name(), absl::StrCat("ends after ", output::Counted(rows_read_, "row"),
                                                ", the rows themselves go on"));
}

absl::StatusOr<RowTagsWriter> RowTagsWriter::Create(const std::string& ids_path,
                                                    const std::string& labels_path) {
  RowTagsWriter writer;
  if (!ids_path.empty()) {
    CLIENT_ASSIGN_OR_RETURN(writer.ids_, ReplacedFile::Create(ids_path));
  }
  if (!labels_path.empty()) {
    CLIENT_ASSIGN_OR_RETURN(writer.labels_, ReplacedFile::Create(labels_path));
  }
  return writer;
}

absl::Status RowTagsWriter::Write(const v1::Row& row) {
  errno = 0;
  if (ids_.has_value()) {
    ids_->stream() << (row.has_id() ? absl::StrCat(row.id()) : kNoId) << "\n";
    CLIENT_RETURN_IF_ERROR(ids_->Check());
  }
  if (labels_.has_value()) {
    labels_->stream() << LabelsText({row.labels().begin(), row.labels().end()}) << "\n";
    CLIENT_RETURN_IF_ERROR(labels_->Check());
  }
  return absl::OkStatus();
}

absl::Status RowTagsWriter::Finish() {
  for (auto* file : {&ids_, &labels_}) {
    if (file->has_value()) CLIENT_RETURN_IF_ERROR((*file)->Close());
  }
  return absl::OkStatus();
}

absl::Status RowTagsWriter::Publish() {
  for (auto* file : {&ids_, &labels_}) {
    if (file->has_value()) CLIENT_RETURN_IF_ERROR((*file)->Publish());
  }
  return absl::OkStatus();
}

}  // namespace softlookup::tool
