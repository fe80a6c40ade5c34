#ifndef SOFTLOOKUP_CLIENT_CLI_NEAREST_NAME_H_
#define SOFTLOOKUP_CLIENT_CLI_NEAREST_NAME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::cli {

// Returns the name in `known` that is nearest to `word`, or "" if none is near. An edit inserts,
// deletes or replaces one byte. A name is near if it is at most `edits_max` edits away from `word`,
// and at most half as many edits as `word` has bytes. Of equally near names, returns the first.
std::string NearestName(absl::string_view word, const std::vector<std::string>& known,
                        std::size_t edits_max = 2);

// Returns "; did you mean NAME?" with the name that NearestName() returns, or "" if none is near.
std::string Suggestion(absl::string_view word, const std::vector<std::string>& known);

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_NEAREST_NAME_H_
