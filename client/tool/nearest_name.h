#ifndef SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_
#define SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::tool {

// Returns "; did you mean ...?" with the name in `known` that is nearest to `word`, or "" if none
// is near. A name is near if at most two bytes must be inserted, deleted or replaced to get it from
// `word`. If `word` has two or three bytes, at most one edit is allowed. If it is shorter, no other
// name is near.
std::string Suggestion(absl::string_view word, const std::vector<std::string>& known);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_NEAREST_NAME_H_
