#include "client/tool/word_list.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {

absl::StatusOr<bool> NextWord(ByteSource* source, std::string* word) {
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, source->ReadLine(word));
    if (!read) return false;
    absl::StripAsciiWhitespace(word);
    if (!word->empty()) return true;
  }
}

absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path,
                                                   BlankLines blank_lines) {
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::vector<std::string> names;
  std::string name;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source, &name));
    if (!read) return names;
    names.push_back(name);
    if (blank_lines == BlankLines::kRefuse && source.line_number() != names.size()) {
      return InputError(source.name(),
                        absl::StrCat("line ", names.size(),
                                     " is blank; each line must name a row, from position 0 on"));
    }
  }
}

}  // namespace softlookup::tool
