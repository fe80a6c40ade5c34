#ifndef SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
#define SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"

namespace softlookup::tool {

// Reads the next line that is not blank, and removes the white space around it. Returns false at
// the end.
absl::StatusOr<bool> NextWord(ByteSource* source, std::string* word);

enum class BlankLines { kSkip, kRefuse };

// Reads all words of a file. Word j, from 0, names position j: a blank line takes no position. With
// kRefuse, a blank line before the last word is an InputError, because the user may mean a position
// without a name.
absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path,
                                                   BlankLines blank_lines = BlankLines::kSkip);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
