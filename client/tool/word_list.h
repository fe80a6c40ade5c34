#ifndef SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
#define SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/byte_source.h"

namespace softlookup::tool {

// The next word: a line without the white space around it. Blank lines are skipped, so words and
// positions keep in step. False at the end.
absl::StatusOr<bool> NextWord(ByteSource* source, std::string* word);

// All words of a file: word j names position j.
absl::StatusOr<std::vector<std::string>> ReadNames(const std::string& path);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WORD_LIST_H_
