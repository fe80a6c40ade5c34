#ifndef SOFTLOOKUP_CLIENT_TOOL_TOKEN_FILE_H_
#define SOFTLOOKUP_CLIENT_TOOL_TOKEN_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace softlookup::tool {

// Writes `token` and a line feed to a new file with the mode kOwnerOnly, by CreateFile().
//
// Replaces a leftover: a regular file with a token whose SHA-256 is not in `auth_text`, the text of
// the auth file. `softlookup auth add --token-out` leaves such a file if it is killed before it has
// changed the auth file. AlreadyExists for any other file at `path`.
absl::Status WriteTokenFile(const std::string& path, const std::string& token,
                            const std::string& auth_text);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_TOKEN_FILE_H_
