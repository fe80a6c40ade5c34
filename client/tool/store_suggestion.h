#ifndef SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
#define SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_

#include "absl/status/status.h"
#include "client/tool/command.h"

namespace softlookup::tool {

// Returns `status`. If it says that the server has no store of some name, appends the name of the
// store whose name is nearest to that, of the stores that the caller may read and whose names begin
// with the same character. Asks the server for them, for a few seconds at most.
absl::Status WithNearestStore(const absl::Status& status, const Session& session);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_SUGGESTION_H_
