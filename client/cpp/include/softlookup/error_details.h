#ifndef SOFTLOOKUP_ERROR_DETAILS_H_
#define SOFTLOOKUP_ERROR_DETAILS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace softlookup {

// The functions below read the details that a server sends with a failed call, beside code and
// message. The client keeps each detail as a payload of the absl::Status, under its type URL, such
// as "type.googleapis.com/google.rpc.ErrorInfo".

// Returns the stable word that names the failure, such as "STORE_NOT_FOUND". Programs must match
// this, never the message. Empty if `status` is OK or did not come from a softlookup server.
std::string ErrorReason(const absl::Status& status);

// Returns what the failure is about, by key: `store`, `field`, `row`, `limit`, ... Empty if the
// server did not say.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// Returns the shortest time after which the same call can succeed, as the server named it. Unset if
// the server named none, or if `status` did not come from the server.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

}  // namespace softlookup

#endif  // SOFTLOOKUP_ERROR_DETAILS_H_
