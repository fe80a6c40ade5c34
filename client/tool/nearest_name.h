#ifndef SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_
#define SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::tool {

// Returns "; did you mean ...?" with the name in `known` that is nearest to `word`, or "" if none
// is near. A name is near if it is at most two edits away, or one for a `word` of two or three
// bytes. To a `word` of one byte no other name is near.
std::string Suggestion(absl::string_view word, const std::vector<std::string>& known);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_
