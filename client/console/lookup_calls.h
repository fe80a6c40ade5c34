#ifndef SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_CALLS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_CALLS_H_

#include "absl/status/statusor.h"
#include "client/console/api.h"
#include "client/output/json.h"

namespace softlookup::console {

// Returns the vector of a query that is given as a sum of rows, words and numbers.
absl::StatusOr<output::Json> MakeQuery(const Backend& backend, const output::Json& request);
// Returns the answer to one query.
absl::StatusOr<output::Json> Lookup(const Backend& backend, const output::Json& request);
// Returns how the weight of one query lies over positions, in blocks of positions.
absl::StatusOr<output::Json> MassByPosition(const Backend& backend, const output::Json& request);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_LOOKUP_CALLS_H_
