#include "client/tool/word_list.h"

#include "absl/strings/ascii.h"
#include "client/cpp/status_macros.h"

namespace softlookup::tool {

absl::StatusOr<bool> NextWord(ByteSource* source, std::string* word) {
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, source->ReadLine(word));
    if (!read) return false;
    absl::StripAsciiWhitespace(word);
    if (!word->empty()) return true;
  }
}

absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path) {
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::vector<std::string> names;
  std::string name;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source, &name));
    if (!read) return names;
    names.push_back(name);
  }
}

}  // namespace softlookup::tool
