#ifndef SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
#define SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_

#include "absl/status/status.h"
#include "client/tool/command.h"

namespace softlookup::tool {

// Returns `status`. If its reason is STORE_NOT_FOUND, asks the server for the first 1000 stores
// whose names begin with the same character, and waits two seconds at most. Appends the most
// similar of these names to the message, if one is similar enough.
absl::Status WithNearestStore(const absl::Status& status, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
