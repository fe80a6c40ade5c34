#include "client/tool/row_tags.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/lib/status_macros.h"
#include "client/tool/exit_code.h"
#include "client/tool/word_list.h"

namespace softlookup::tool {

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

absl::Status RowTags::Read(std::uint32_t row_count, v1::AppendRequest* request) {
  std::string line;
  for (std::uint32_t i = 0; i < row_count; ++i, ++rows_read_) {
    if (ids_.has_value()) {
      CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&*ids_, &line));
      if (!read) return TooShort(*ids_);
      std::uint64_t id;
      if (!absl::SimpleAtoi(line, &id)) {
        return InputError(ids_->name(), absl::StrCat("line ", ids_->line_number(), ": \"", line,
                                                     "\" is not an id"));
      }
      request->add_ids(id);
    }
    if (labels_.has_value()) {
      CLIENT_ASSIGN_OR_RETURN(const bool read, labels_->ReadLine(&line));
      if (!read) return TooShort(*labels_);
      v1::RowLabels* labels = request->add_row_labels();
      for (const absl::string_view label : absl::StrSplit(line, ',')) {
        const absl::string_view stripped = absl::StripAsciiWhitespace(label);
        if (!stripped.empty()) labels->add_labels(std::string(stripped));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RowTags::CheckAtEnd() {
  std::string line;
  for (auto* source : {&ids_, &labels_}) {
    if (!source->has_value()) continue;
    CLIENT_ASSIGN_OR_RETURN(const bool more, NextWord(&**source, &line));
    if (more) return TooLong(**source);
  }
  return absl::OkStatus();
}

absl::Status RowTags::TooShort(const ByteSource& source) const {
  return InputError(source.name(),
                    absl::StrCat("ends after ", rows_read_, " rows, the rows themselves go on"));
}

absl::Status RowTags::TooLong(const ByteSource& source) const {
  return InputError(source.name(),
                    absl::StrCat("line ", source.line_number(), ": goes on after the last of ",
                                 rows_read_, " rows"));
}

}  // namespace softlookup::tool
