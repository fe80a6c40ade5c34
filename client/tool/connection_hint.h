#ifndef SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_
#define SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// What the tool's user can do about a server that was not reached (UNAVAILABLE), as far as gRPC's
// message and the credentials in use tell.
absl::string_view ConnectionHint(const absl::Status& status, const CredentialFiles& credentials);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_
