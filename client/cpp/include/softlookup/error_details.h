#ifndef SOFTLOOKUP_ERROR_DETAILS_H_
#define SOFTLOOKUP_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace softlookup {

// What a server said about a failed call beside its code and message. The client keeps every detail
// of the answer as a payload of the absl::Status, under its type URL
// ("type.googleapis.com/google.rpc.ErrorInfo"); these read them back.

// The stable word that names the failure, such as "STORE_NOT_FOUND": match this, never the message.
// Empty if `status` is OK or did not come from a softlookup server.
std::string ErrorReason(const absl::Status& status);

// What the failure is about, by key: `store`, `field`, `row`, `limit`, ... Empty if unknown.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// How long to wait at least before the same call may succeed. Unset where waiting does not help.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

}  // namespace softlookup

#endif  // SOFTLOOKUP_ERROR_DETAILS_H_
