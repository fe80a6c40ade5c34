#ifndef SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_
#define SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "softlookup/credentials.h"

namespace softlookup::tool {

// Returns advice for the user after a call that failed with `status`, which must be UNAVAILABLE.
// The advice depends on gRPC's message in `status` and on the credentials in use. It speaks of TLS
// only if a handshake failed or no connection was made. `answered_before`: whether the server
// answered an earlier call of this run.
absl::string_view ConnectionHint(const absl::Status& status, const CredentialFiles& credentials,
                                 bool answered_before);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_CONNECTION_HINT_H_
