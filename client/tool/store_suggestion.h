#ifndef SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
#define SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_

#include "absl/status/status.h"
#include "client/tool/command.h"

namespace softlookup::tool {

// Returns `status`. If its reason is STORE_NOT_FOUND, asks the server for the stores whose names
// begin with the same character. Waits two seconds at most for each page of names. Appends the most
// similar of these names to the message, if one is similar enough.
absl::Status WithNearestStore(const absl::Status& status, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
