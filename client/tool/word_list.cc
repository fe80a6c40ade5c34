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

absl::StatusOr<std::vector<std::string>> ReadWords(const std::string& path) {
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::vector<std::string> words;
  std::string word;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source, &word));
    if (!read) return words;
    words.push_back(word);
  }
}

absl::StatusOr<PositionNames> ReadNames(const std::string& path) {
  CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  PositionNames names{.file = source.name(), .by_position = {}, .lines = 0};
  std::string name;
  for (;;) {
    CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source, &name));
    names.lines = source.line_number();
    if (!read) return names;
    names.by_position.resize(names.lines);
    names.by_position.back() = name;
  }
}

}  // namespace softlookup::tool
