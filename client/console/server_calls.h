#ifndef SOFTLOOKUP_CLIENT_CONSOLE_SERVER_CALLS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_SERVER_CALLS_H_

#include "absl/status/statusor.h"
#include "client/console/api.h"
#include "client/output/json.h"

namespace softlookup::console {

// Returns what the console is connected to.
absl::StatusOr<output::Json> About(const Backend& backend, const output::Json& request);
// Returns whether the server takes calls.
absl::StatusOr<output::Json> Health(const Backend& backend, const output::Json& request);
// Returns the text of the /metrics of the server.
absl::StatusOr<output::Json> ReadMetrics(const Backend& backend, const output::Json& request);
absl::StatusOr<output::Json> ListBackups(const Backend& backend, const output::Json& request);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_SERVER_CALLS_H_
