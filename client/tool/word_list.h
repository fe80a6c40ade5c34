#ifndef SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
#define SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"

namespace softlookup::tool {

// Reads the next line that is not blank, and removes the white space around it. Returns false at
// the end.
absl::StatusOr<bool> NextWord(ByteSource* source, std::string* word);

// Reads all words of a file, one a line. Skips blank lines. Errors are InputErrors.
absl::StatusOr<std::vector<std::string>> ReadWords(const std::string& path);

// The names of rows by their positions, as read from a file.
struct PositionNames {
  std::string file;  // For messages. Empty if there is no file.
  // by_position[j] is the name of position j. Empty for a row without a name. The last element is
  // not empty.
  std::vector<std::string> by_position;
  std::uint64_t lines = 0;  // Of the file, with the blank lines at its end.
};

// Reads a file of names: line j + 1 names position j, and a blank line is a row without a name.
// White space around a name is removed. Errors are InputErrors.
absl::StatusOr<PositionNames> ReadNames(const std::string& path);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
