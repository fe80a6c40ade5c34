#ifndef SOFTLOOKUP_CLIENT_CONSOLE_MEMORY_CALLS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_MEMORY_CALLS_H_

#include "absl/status/statusor.h"
#include "client/console/api.h"
#include "client/output/json.h"

namespace softlookup::console {

// Returns a running memory as of an append index.
absl::StatusOr<output::Json> ReadMemory(const Backend& backend, const output::Json& request);
// Runs the Posner experiment on a store of its own, which it deletes.
absl::StatusOr<output::Json> Posner(const Backend& backend, const output::Json& request);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_MEMORY_CALLS_H_
